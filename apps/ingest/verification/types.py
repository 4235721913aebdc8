"""Value types of a comparison."""

from collections.abc import Sequence
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

    def add_files(self, kind: Kind, detail: str, names: Sequence[str]) -> None:
        """Add a difference of some files, if there are any: their number and the first few."""
        if names:
            rest = len(names) - MAX_NAMES
            more = f" and {rest:,} more" if rest > 0 else ""
            self.add(kind, f"{detail}, {len(names):,}: {', '.join(names[:MAX_NAMES])}{more}")
