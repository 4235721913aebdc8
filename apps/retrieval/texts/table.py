"""The files of a published generation, and which of them may match."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from apps.index import queries
from apps.index.grams import ANY, Piece, Required, Segment
from apps.index.models import Root
from apps.index.query_cache import per_generation
from apps.index.texts import Block, Place, TextStore, get_texts

Numbers = NDArray[np.int64]

# After so many places of a table were looked up one by one, all are read, which takes as long.
LOOKED_UP = 4_000


@dataclass(frozen=True, slots=True)
class FileFacts:
    """An ingested file."""

    document: str  # SourceFile.document
    path: str
    language: str
    sha256: str
    size: int  # bytes


class KnownPlaces:
    """Where the texts of some keys are, as far as they were looked up: 40 bytes each. Thread-safe.
    To look one up in the text store takes as long as to read 10 KB, so after many all are."""

    def __init__(self, keys: NDArray[np.bytes_]) -> None:
        self._keys = keys
        self._lock = threading.Lock()
        self._moves = 0  # `TextStore.moves` for which the rows hold
        self._rows: NDArray[np.int64] | None = None
        self._looked_up = 0

    def of(self, store: TextStore, keys: Mapping[str, int]) -> dict[str, Place]:
        """Return SHA-256 → place, of keys with their numbers. Raises Unavailable."""
        numbers = list(keys.values())
        with self._lock:
            if self._rows is None or self._moves != store.moves:
                self._rows = np.full((len(self._keys), 5), -1, np.int64)
                self._moves, self._looked_up = store.moves, 0
            elif self._looked_up > LOOKED_UP:
                self._look_up_all(store, self._rows)
            rows = self._rows[numbers].tolist()
        found = {key: place_of(row) for key, row in zip(keys, rows, strict=True) if row[0] >= 0}
        if len(found) < len(keys):
            looked_up = store.places(key for key in keys if key not in found)
            with self._lock:
                for key, place in looked_up.items():
                    self._rows[keys[key]] = (*place.block, place.start, place.size)
                self._looked_up += len(keys) - len(found)
            found |= looked_up
        return found

    def _look_up_all(self, store: TextStore, rows: NDArray[np.int64]) -> None:
        self._looked_up = 0
        places = store.each_place()
        found = np.array([each[0] for each in places], "S32")
        at = np.minimum(np.searchsorted(self._keys, found), len(self._keys) - 1)
        own = np.flatnonzero(self._keys[at] == found)
        rows[at[own]] = np.array([each[1:] for each in places], np.int64)[own]


def place_of(row: Sequence[int]) -> Place:
    segment, offset, block_size, start, size = row
    return Place(Block(segment, offset, block_size), start, size)


@dataclass
class Candidates:
    """The files of a table that may match."""

    numbers: Numbers
    unknown: int = 0  # of these, files that no segment knows
    # Of each key, the number of its segment and its number there; -1 if none knows it.
    places: tuple[Numbers, Numbers] | None = None
    # Of each segment, the pieces that may match; empty: whole files.
    pieces: Sequence[tuple[Segment, bytes]] = ()

    def pieces_of(self, key: int) -> list[Piece] | None:
        """The pieces of a text that may match; None: all of it."""
        if self.places is None or not self.pieces or (at := int(self.places[0][key])) < 0:
            return None
        segment, pieces = self.pieces[at]
        return segment.pieces_of(int(self.places[1][key]), pieces)


@dataclass
class FileTable:
    """The ingested files of one generation of a root, by path."""

    files: list[FileFacts]
    keys: NDArray[np.bytes_]  # the distinct SHA-256 of the files, ascending
    key_of: Numbers  # for each file, the number of its key
    # File name of a segment → number of the key of each of its texts, -1 for other texts.
    _keys_of: dict[str, Numbers] = field(default_factory=dict)
    _numbers_of: dict[str, int] = field(default_factory=dict)
    _places: KnownPlaces = field(init=False)

    def __post_init__(self) -> None:
        self._places = KnownPlaces(self.keys)

    def texts(self, numbers: Sequence[int]) -> dict[str, bytes]:
        """Return SHA-256 → text of some files, by their numbers. Those that are missing or damaged
        are left out. Raises Unavailable."""
        store = get_texts()
        return store.read_at(self._places.of(store, self._keys(numbers)))

    def parts(self, numbers: Sequence[int], candidates: Candidates) -> dict[str, bytes]:
        """As `texts`, but only the pieces of each that may match."""
        store = get_texts()
        keys = self._keys(numbers)
        places = self._places.of(store, keys)
        return store.read_parts(
            (key, places[key], candidates.pieces_of(number))
            for key, number in keys.items()
            if key in places
        )

    def _keys(self, numbers: Sequence[int]) -> dict[str, int]:
        """SHA-256 of some files, with their numbers."""
        keys = self.key_of[numbers].tolist()
        return {self.files[n].sha256: key for n, key in zip(numbers, keys, strict=True)}

    def candidates(
        self, segments: Sequence[Segment], required: Required, *, in_piece: bool = True
    ) -> Candidates:
        """The files that may match. `in_piece`: a match is in one piece of a text."""
        if required == ANY:
            return Candidates(np.arange(len(self.files)))
        may_match = np.zeros(len(self.keys), np.bool_)
        known = np.zeros(len(self.keys), np.bool_)
        current = {segment.path.name: segment for segment in segments}
        for name in self._keys_of.keys() - current.keys():
            self._keys_of.pop(name, None)
        where = (np.full(len(self.keys), -1), np.full(len(self.keys), -1))
        found: list[tuple[Segment, bytes]] = []
        for name, segment in current.items():
            numbers = self._numbers(name, segment)
            own = numbers >= 0
            if own.any():
                known[numbers[own]] = True
                texts, pieces = segment.matching(required, in_piece=in_piece)
                some = np.flatnonzero(texts & own)
                may_match[numbers[some]] = True
                if pieces is not None:
                    where[0][numbers[some]], where[1][numbers[some]] = len(found), some
                    found.append((segment, pieces.tobytes()))
        unknown = ~known
        files = np.flatnonzero((may_match | unknown)[self.key_of])
        return Candidates(files, int(np.count_nonzero(unknown[self.key_of])), where, found)

    def number_of(self, document: str) -> int | None:
        """The number of the file with this document."""
        if not self._numbers_of:
            self._numbers_of.update((each.document, n) for n, each in enumerate(self.files))
        return self._numbers_of.get(document)

    def _numbers(self, name: str, segment: Segment) -> Numbers:
        if (numbers := self._keys_of.get(name)) is None:
            at = np.searchsorted(self.keys, segment.keys)
            at[at == len(self.keys)] = 0
            same = self.keys[at] == segment.keys if len(self.keys) else np.zeros(len(at), np.bool_)
            numbers = self._keys_of[name] = np.where(same, at, -1)
        return numbers


@per_generation
def file_table(root: Root) -> FileTable:
    """The table of the generation of the object `root`. Cached."""
    columns = ("document", "path", "language", "sha256", "size")
    rows = queries.generation_files(root).ingested().order_by("path").values_list(*columns)
    files = [FileFacts(str(row[0]), *row[1:]) for row in rows.iterator()]
    hashes = np.array([bytes.fromhex(each.sha256) for each in files], "S32")
    keys, key_of = np.unique(hashes, return_inverse=True)
    return FileTable(files, keys, key_of)
