"""Verifies the index: compares rows, vectors, words and folders with each other."""

from apps.ingest.verification.compare import verify, verify_root, verify_shared
from apps.ingest.verification.outcome import Outcome
from apps.ingest.verification.outcome import compare as compare_all
from apps.ingest.verification.types import Difference, Kind, RootComparison

__all__ = [
    "RootComparison",
    "Difference",
    "Kind",
    "Outcome",
    "compare_all",
    "verify",
    "verify_root",
    "verify_shared",
]
