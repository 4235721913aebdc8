"""Verifies the index: compares rows, parts and folders with each other."""

from apps.ingest.verification.compare import verify_root
from apps.ingest.verification.outcome import Outcome
from apps.ingest.verification.outcome import compare as compare_all
from apps.ingest.verification.types import Difference, Kind, RootComparison

__all__ = ["RootComparison", "Difference", "Kind", "Outcome", "compare_all", "verify_root"]
