"""The files of a published generation, and which of them may match."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.index.grams import ANY, Required, Segment
from apps.index.models import Root
from apps.index.query_cache import per_generation
from apps.index.texts import Block, Place, TextStore, get_texts
from apps.lookup.symbols.project import LiveFile, root_files
from apps.lookup.texts.matching import Stored

Numbers = NDArray[np.int64]

# After so many places of a table were looked up one by one, all are read, which takes as long.
LOOKED_UP = 4_000


class KnownPlaces:
    """Where the texts of some keys are, as far as they were looked up: 40 bytes each. Thread-safe.
    To look one up in the text store takes as long as to read 10 KB, so after many all are."""

    def __init__(self, keys: NDArray[np.bytes_]) -> None:
        self._keys = keys
        self._lock = threading.Lock()
        self._moves = 0  # `TextStore.moves` for which the rows hold
        self._rows: NDArray[np.int64] | None = None
        self._looked_up = 0

    def of(self, store: TextStore, keys: Numbers) -> Numbers:
        """Return segment, offset and size of the block, and start and size of the text in it, of
        keys by their numbers: (n, 5), -1 for texts that the store lacks. Raises Unavailable."""
        with self._lock:
            if self._rows is None or self._moves != store.moves:
                self._rows = np.full((len(self._keys), 5), -1, np.int64)
                self._moves, self._looked_up = store.moves, 0
            elif self._looked_up > LOOKED_UP:
                self._look_up_all(store, self._rows)
            rows = self._rows
            known = rows[keys]
        unknown = keys[known[:, 0] < 0]
        if not len(unknown):
            return known
        numbers = {bytes(self._keys[n]).ljust(32, b"\0").hex(): n for n in unknown.tolist()}
        looked_up = store.places(numbers)
        with self._lock:
            for key, place in looked_up.items():
                rows[numbers[key]] = (*place.block, place.start, place.size)
            self._looked_up += len(numbers)
            return rows[keys]

    def _look_up_all(self, store: TextStore, rows: NDArray[np.int64]) -> None:
        self._looked_up = 0
        places = store.each_place()
        keys = np.array([place[0] for place in places], "S32")
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        own = np.flatnonzero(self._keys[at] == keys)
        rows[at[own]] = np.array([place[1:] for place in places], np.int64)[own]


class KnownRanges(NamedTuple):
    """Where the texts of some keys may match, by key."""

    keys: Numbers  # ascending
    ranges: list[tuple[int, int]]  # start and end in the text of each, bytes


@dataclass
class Candidates:
    """The files of a table that may match."""

    numbers: Numbers
    unknown: int = 0  # of these, files that no segment knows
    # Segments, the pieces that may match in each, and the number of the key of each of its texts.
    # Of a text without such pieces, all may match.
    found: Sequence[tuple[Segment, Numbers, Numbers]] = ()

    @cached_property
    def ranges(self) -> KnownRanges:
        """Where the texts may match."""
        of_segments = [(segment.spans_of(pieces), key_of) for segment, pieces, key_of in self.found]
        none = np.zeros(0, np.int64)
        keys = np.concatenate([none, *(key_of[texts] for (texts, _), key_of in of_segments)])
        if not len(keys):
            return KnownRanges(none, [])
        starts, ends = np.concatenate([spans for (_, spans), _ in of_segments]).astype(np.int64).T
        # A piece ends in the line with which the next one of its text starts.
        apart = (keys[1:] != keys[:-1]) | (starts[1:] > ends[:-1])
        first, last = np.append(True, apart), np.append(apart, True)
        keys, starts, ends = keys[first], starts[first], ends[last]
        order = np.argsort(keys, kind="stable")
        pairs = zip(starts[order].tolist(), ends[order].tolist(), strict=True)
        return KnownRanges(keys[order], list(pairs))


@dataclass
class FileTable:
    """The ingested files of one generation of a root, by path."""

    files: list[LiveFile]
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
        rows = self._places.of(store, self.key_of[numbers]).tolist()
        places = {
            self.files[number].sha256: Place(Block(*block), start, size)
            for number, (*block, start, size) in zip(numbers, rows, strict=True)
            if size >= 0
        }
        return store.read_at(places)

    def stored(self, repo: str, numbers: Sequence[int], candidates: Candidates) -> list[Stored]:
        """Return where the texts of some files are, and what of them may match. repo: the id of
        their repository. Raises Unavailable."""
        known, keys = candidates.ranges, self.key_of[numbers]
        rows = self._places.of(get_texts(), keys)
        first = np.searchsorted(known.keys, keys).tolist()
        last = np.searchsorted(known.keys, keys, side="right").tolist()
        places = zip(numbers, rows.tolist(), first, last, strict=True)
        stored: list[Stored] = []
        for number, (*block, start, size), begin, end in places:
            ranges = [(start + a, start + b) for a, b in known.ranges[begin:end] or [(0, size)]]
            # The block of a text that the store lacks is one that nobody can read.
            file = self.files[number]
            key = repo, file.path, file.language
            stored.append((key, tuple(block), start, size, ranges))
        return stored

    def candidates(
        self, segments: Sequence[Segment], required: Required, *, in_piece: bool = True
    ) -> Candidates:
        """The files that may match. `in_piece`: a match is in one piece of a text."""
        if required == ANY:
            return Candidates(np.arange(len(self.files)))
        current = {segment.path.name: segment for segment in segments}
        for name in self._keys_of.keys() - current.keys():
            self._keys_of.pop(name, None)
        may_match = np.ones(len(self.keys), np.bool_)
        own: list[tuple[Segment, Numbers]] = []
        for name, segment in current.items():
            key_of = self._numbers(name, segment)
            known = key_of[key_of >= 0]
            if len(known):
                may_match[known] = False
                own.append((segment, key_of))
        unknown = np.count_nonzero(may_match[self.key_of])
        matches: list[tuple[Segment, Numbers, Numbers]] = []
        for segment, key_of in own:
            texts, pieces = segment.matching(required, in_piece=in_piece)
            keys = key_of[texts]
            may_match[keys[keys >= 0]] = True
            if pieces is not None and len(pieces):
                matches.append((segment, pieces, key_of))
        return Candidates(np.flatnonzero(may_match[self.key_of]), int(unknown), matches)

    def number_of(self, document: str) -> int | None:
        """The number of the file with this document."""
        if not self._numbers_of:
            self._numbers_of.update((file.document, n) for n, file in enumerate(self.files))
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
    """The table of the generation of the object `root`."""
    files = [*root_files(root).files.values()]
    hashes = np.array([bytes.fromhex(file.sha256) for file in files], "S32")
    return FileTable(files, *np.unique(hashes, return_inverse=True))
