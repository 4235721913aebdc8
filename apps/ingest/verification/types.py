"""Value types of a comparison."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[
    # The counts of the root's row are not the totals of its live rows.
    "counts_differ",
    # A part of the index is lost, or does not agree with its checksums.
    "index_unreadable",
    # The parts have other files or chunks than the rows or, with the source, than the folder.
    "index_differs",
    # Files without a readable text, or with a text that is shorter than their chunks say.
    "texts_missing",
    # With the source: the folder or a file differs from the rows.
    "folder_missing",
    "folder_unreadable",
    "file_changed",
    "file_missing",
    "file_new",
    # With the source: the last run could not read or parse the file.
    "file_problem",
    # The lock of the embedding model does not fit the roots or their vectors.
    "lock",
    # Files of the n-gram index that do not agree with their checksums: Grep may miss lines.
    "grams_damaged",
    # Parts of a root that this database does not know.
    "orphan",
    # Dead rows, which the next sweep removes.
    "left_over",
    # The root was changed during each of several comparisons.
    "unsettled",
]
# Differences that disappear without a repair.
HARMLESS: frozenset[Kind] = frozenset({"left_over", "unsettled"})
# Number of names in a message.
MAX_NAMES = 3


@dataclass(frozen=True)
class Difference:
    """A difference that a comparison found."""

    root: str  # path of the root, id of one without a row, or "" for all roots
    kind: Kind
    detail: str

    @property
    def is_harmless(self) -> bool:
        return self.kind in HARMLESS


@dataclass
class RootComparison:
    """The comparison of one root. The counts show how much was compared."""

    root: str  # its path
    name: str = ""
    rows: int = 0  # live rows of ingested files
    chunks: int = 0  # that these rows have in the index
    indexed: int = 0  # live chunks in the parts
    files: int = 0  # read from the folder
    parsed: int = 0  # files that were chunked again
    notes: list[str] = field(default_factory=list)  # what was not compared, and why
    differences: list[Difference] = field(default_factory=list)

    def add(self, kind: Kind, detail: str) -> None:
        self.differences.append(Difference(self.root, kind, detail))


class NameSample:
    """A count of items, and the names of the first few."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[str] = []

    def add(self, *names: str) -> None:
        self.extend(names)

    def extend(self, names: Iterable[str]) -> None:
        for name in names:
            self.count += 1
            if len(self._first) < MAX_NAMES:
                self._first.append(name)

    def __bool__(self) -> bool:
        return self.count > 0

    def __str__(self) -> str:
        more = f" and {self.count - MAX_NAMES:,} more" if self.count > MAX_NAMES else ""
        return f"{self.count:,}: {', '.join(self._first)}{more}"
