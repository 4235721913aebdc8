"""Citations, and whether they still hold."""

from apps.lookup.citations.baseline import Cited
from apps.lookup.citations.check import Checked, check
from apps.lookup.citations.verdict import HOLDS, Comparison, Verdict

__all__ = ["HOLDS", "Checked", "Cited", "Comparison", "Verdict", "check"]
