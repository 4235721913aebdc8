"""Counts the files of git work trees that git does not track and that are not ingested either.

An ignored or excluded folder, such as `node_modules/`, is not entered: it counts as one.
"""

from collections import Counter

from apps.core.values.surrogates import storable
from apps.ingest.discovery.eligibility import BINARY, LOG, NOT_INCLUDED
from apps.ingest.types import MAX_LEFT_OUT, LeftOut

UNTRACKED = "Not tracked by git"
# Why a file is left out that no ignore rule names. There may be very many of the types that are not
# ingested (images, records), so these are counted, not listed one by one.
OF_UNTRACKED = frozenset({UNTRACKED, NOT_INCLUDED, LOG, BINARY})
MAX_NAMED = 200


class LeftOutCounter:
    """Counts files and folders, and notes the names of the first."""

    def __init__(self) -> None:
        self._counts: Counter[bool] = Counter()
        self._names: list[tuple[str, str]] = []

    def add(self, path: str, reason: str) -> None:
        """Count a file, or a folder, whose path ends with a slash."""
        if self._counts.total() < MAX_LEFT_OUT:
            self._counts[reason not in OF_UNTRACKED] += 1
            if len(self._names) < MAX_NAMED:
                self._names.append((storable(path), storable(reason)))

    def total(self) -> LeftOut:
        return LeftOut(self._counts[False], self._counts[True], tuple(sorted(self._names)))
