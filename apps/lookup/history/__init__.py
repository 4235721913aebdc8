"""Who changed what, when and why: the log, blame and diffs of a repository's commits."""

from apps.lookup.history.history import history
from apps.lookup.history.query import HistoryQuery

__all__ = ["HistoryQuery", "history"]
