"""What a comparison finds."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

Kind = Literal[
    # The root's row counts other files, chunks, vectors or skipped files than its live rows.
    "counts_differ",
    # Chunks of live rows that have no vector in Chroma; vectors that no row explains.
    "vectors_missing",
    "vectors_left_over",
    # Chroma answers with an error for this root, or with vectors that are none.
    "vectors_unreadable",
    # The same of the word index.
    "words_missing",
    "words_left_over",
    "words_unreadable",
    # Text or facts of a chunk differ between Chroma, the word index and the row.
    "text_differs",
    # Definitions without a file, or twice; with the source: others than the file has.
    "symbols_differ",
    # With the source: the file's chunks today are not those of the index.
    "chunks_differ",
    # With the source: the folder or a file differs from the rows.
    "folder_missing",
    "folder_unreadable",
    "file_changed",
    "file_missing",
    "file_new",
    # With the source: a file that its last run could not read or parse, as its row says.
    "file_problem",
    # The lock of the embedding model does not fit the roots or their vectors.
    "lock",
    # Vectors or words of a root that has no row.
    "orphan",
    # Rows that no longer count, with their vectors and words: the next sweep removes them.
    "left_over",
    # The root was changed during each of several comparisons.
    "unsettled",
]
# What goes away by itself.
HARMLESS: frozenset[Kind] = frozenset({"left_over", "unsettled"})
# How many names one sentence gives.
MOST_NAMED = 3


@dataclass(frozen=True)
class Difference:
    """One thing that does not agree. `root` is the root's path, the id of what has no row, or
    empty where all roots are concerned."""

    root: str
    kind: Kind
    detail: str

    @property
    def is_harmless(self) -> bool:
        return self.kind in HARMLESS


@dataclass
class Compared:
    """What was compared of one root, so that no difference means something.

    `rows` are live rows of ingested files; `chunks` those that the rows tell of, `vectors` and
    `words` those that were found and read; `files` were read from the folder, `parsed` of them
    also cut into chunks again. `notes` say what was not compared, and why.
    """

    root: str
    name: str = ""
    rows: int = 0
    chunks: int = 0
    vectors: int = 0
    words: int = 0
    files: int = 0
    parsed: int = 0
    notes: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    def add(self, kind: Kind, detail: str) -> None:
        self.differences.append(Difference(self.root, kind, detail))


class Named:
    """How many of something there are, and the first few by name."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[str] = []

    def add(self, *names: str) -> None:
        self.extend(names)

    def extend(self, names: Iterable[str]) -> None:
        for name in names:
            self.count += 1
            if len(self._first) < MOST_NAMED:
                self._first.append(name)

    def __bool__(self) -> bool:
        return self.count > 0

    def __str__(self) -> str:
        more = f" and {self.count - MOST_NAMED:,} more" if self.count > MOST_NAMED else ""
        return f"{self.count:,}: {', '.join(self._first)}{more}"


def slices(items: Iterable[str], size: int) -> Iterator[list[str]]:
    """The items in lists of at most `size`."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part
