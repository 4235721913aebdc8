"""Collects the words and identifiers of chunks in memory, for one segment.

Python gives each distinct identifier and word a number once; everything else works on arrays of
numbers. 20,000 chunks have 1.5 million hits of 100,000 words.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.core.concurrency.ingest_throttle import ingest_throttle
from apps.embedding.terms import Numbers, Terms, Vocabulary, expand, pairs
from apps.index.lexical.encoding import TIMES_BITS, HitLists, encode
from apps.index.lexical.scoring import FIELDS, WEIGHTS
from apps.index.lexical.words import is_identifier, runs, words_of
from apps.index.types import ChunkRecord

_WEIGHTS = np.array([WEIGHTS[field] for field in FIELDS], np.intp)
_MAX_COUNT = 255
# Bytes in memory of a chunk, a hit and a name, with some room for the names' strings.
_CHUNK_BYTES, _HIT_BYTES, _NAME_BYTES = 16, 10, 200

# A row of a table of hits: segment, key, number of chunks, hits.
HitsRow = tuple[int, str, int, bytes]


class Hits(NamedTuple):
    """Some hits, by key, then chunk. Arrays: (hits,)."""

    keys: NDArray[np.int32]  # numbers in a vocabulary
    chunks: NDArray[np.int32]  # from 0, the first of the segment
    times: NDArray[np.uint16]  # weighted tf


class _Table:
    """The rows of one of the tables of hits."""

    def __init__(self, name: str) -> None:
        self.names = Vocabulary()
        self._bits = TIMES_BITS[name]
        self._hits: list[Hits] = []

    @property
    def bytes(self) -> int:
        hits = sum(len(hits.keys) for hits in self._hits)
        return hits * _HIT_BYTES + len(self.names) * _NAME_BYTES

    def add(self, keys: Numbers, chunks: Numbers, times: Numbers) -> None:
        hits = keys.astype(np.int32), chunks.astype(np.int32), times.astype(np.uint16)
        self._hits.append(Hits(*hits))

    def hits(self) -> Hits:
        """All hits in the order in which they were added: the chunks of each key ascend."""
        empty = Hits(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.uint16))
        return Hits(*map(np.concatenate, zip(empty, *self._hits, strict=True)))

    def rows(self, segment: int) -> Iterator[HitsRow]:
        """Yield the rows in the order of their keys."""
        names = sorted(self.names)
        number_of = np.fromiter(map(self.names.__getitem__, names), np.intp, len(names))
        rank = np.empty(len(names), np.int32)
        rank[number_of] = np.arange(len(names))
        ingest_throttle.yield_to_queries()
        keys, chunks, times = self.hits()
        ranks = rank[keys]
        # Stable: the chunks of each key stay in order.
        order = np.argsort(ranks, kind="stable")
        ingest_throttle.yield_to_queries()
        ranks = ranks[order]
        starts = np.flatnonzero(np.diff(ranks, prepend=-1))
        sizes = np.diff(starts, append=len(ranks))
        blobs = encode(HitLists(sizes, chunks[order], times[order]), 0, self._bits)
        owners = map(names.__getitem__, ranks[starts].tolist())
        return zip(repeat(segment), owners, sizes.tolist(), blobs, strict=False)


class Builder:
    """The words of the chunks of a segment, until it is written. Not thread-safe.

    first: number of the first chunk
    lengths, files: number of words and file number of each chunk
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self.lengths: NDArray[np.uint32] = np.zeros(0, np.uint32)
        self.files: NDArray[np.uint32] = np.zeros(0, np.uint32)
        self.tables = {name: _Table(name) for name in TIMES_BITS}
        # The words of each run of characters, one run after the other.
        self._parts = np.zeros(0, np.int32)
        self._part_counts = np.zeros(0, np.int32)
        self._is_identifier = np.zeros(0, bool)

    @property
    def end(self) -> int:
        """The number after the last chunk."""
        return self.first + len(self.files)

    @property
    def bytes(self) -> int:
        """An estimate of the memory that it takes."""
        tables = sum(table.bytes for table in self.tables.values())
        return tables + len(self.files) * _CHUNK_BYTES

    def add(self, records: Sequence[ChunkRecord], files: Sequence[int]) -> None:
        """Add chunks, and the number of each chunk's file."""
        texts = map(runs, chain.from_iterable(map(_fields, records)))
        found = Terms.of(texts, self.tables["naming"].names)
        self._split(found.names[len(self._part_counts) :])
        places, counts = expand(self._part_counts, found.numbers)
        ends = np.concatenate(([0], np.cumsum(counts)))[np.cumsum(found.sizes)]
        sizes = np.diff(ends, prepend=0)
        self._add_identifiers(found)
        self._add_words(Terms([], self._parts[places], sizes))
        lengths = sizes.reshape(-1, len(FIELDS)).sum(axis=1)
        self.lengths = np.concatenate((self.lengths, lengths), dtype=np.uint32, casting="unsafe")
        self.files = np.concatenate((self.files, files), dtype=np.uint32, casting="unsafe")

    def _split(self, new: Sequence[str]) -> None:
        """Number the words of runs that had no number."""
        words = [words_of[name] for name in new]
        ingest_throttle.yield_to_queries()
        counts = np.fromiter(map(len, words), np.int32, len(words))
        number_of = self.tables["posting"].names.__getitem__
        numbers = map(number_of, chain.from_iterable(words))
        self._parts = np.concatenate((self._parts, np.fromiter(numbers, np.int32)))
        self._part_counts = np.concatenate((self._part_counts, counts))
        identifiers = np.fromiter(map(is_identifier, new), bool, len(new))
        self._is_identifier = np.concatenate((self._is_identifier, identifiers))
        ingest_throttle.yield_to_queries()

    def _add_identifiers(self, found: Terms) -> None:
        """Add the identifiers in bodies."""
        text = found.texts
        chosen = (text % len(FIELDS) == FIELDS.index("body")) & self._is_identifier[found.numbers]
        name, chunk, times = pairs(found.numbers[chosen], text[chosen] // len(FIELDS))
        self.tables["naming"].add(name, len(self.files) + chunk, np.ones_like(times))

    def _add_words(self, words: Terms) -> None:
        word, text, times = pairs(words.numbers, words.texts)
        chunk, field = np.divmod(text, len(FIELDS))
        weighted = np.minimum(times, _MAX_COUNT) * _WEIGHTS[field]
        # The fields of a chunk follow each other.
        starts = np.flatnonzero(np.diff(word, prepend=-1) | np.diff(chunk, prepend=-1))
        times = np.add.reduceat(weighted, starts) if len(starts) else weighted
        self.tables["posting"].add(word[starts], len(self.files) + chunk[starts], times)


def _fields(record: ChunkRecord) -> tuple[str, ...]:
    """Return the texts of a chunk in the order of FIELDS."""
    assert FIELDS == ("body", "path", "names", "symbol")
    chunk = record.chunk
    return chunk.text, record.path, " ".join(chunk.names), chunk.symbol
