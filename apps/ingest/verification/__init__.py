"""Compares what the index says with what it holds: rows, vectors, words and the folders."""

from apps.ingest.verification.compare import verify, verify_root, verify_shared
from apps.ingest.verification.outcome import Outcome
from apps.ingest.verification.outcome import compare as compare_all
from apps.ingest.verification.types import Compared, Difference, Kind

__all__ = [
    "Compared",
    "Difference",
    "Kind",
    "Outcome",
    "compare_all",
    "verify",
    "verify_root",
    "verify_shared",
]
