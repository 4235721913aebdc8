"""Collects the words and identifiers of chunks.

Python gives each distinct identifier and word a number once; everything else works on arrays of
numbers. 20,000 chunks have 1.5 million hits of 100,000 words.
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.embedding.terms import Numbers, Terms, Vocabulary, expand, pairs
from apps.index.lexical.scoring import FIELDS, WEIGHTS
from apps.index.lexical.words import is_identifier, runs, words_in
from apps.index.types import ChunkRecord

_WEIGHTS = np.array([WEIGHTS[field] for field in FIELDS], np.intp)
_MAX_COUNT = 255


class Hits(NamedTuple):
    """Some hits, by key, then chunk. Arrays: (hits,)."""

    keys: NDArray[np.int32]  # numbers in a vocabulary
    chunks: NDArray[np.int32]  # from 0
    times: NDArray[np.uint16]  # weighted tf


class Table:
    """Names and their hits."""

    def __init__(self) -> None:
        self.names = Vocabulary()
        self._hits = [Hits(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.uint16))]

    def add(self, keys: Numbers, chunks: Numbers, times: Numbers) -> None:
        hits = keys.astype(np.int32), chunks.astype(np.int32), times.astype(np.uint16)
        self._hits.append(Hits(*hits))

    def hits(self) -> Hits:
        """All hits in the order in which they were added: the chunks of each key ascend."""
        return Hits(*map(np.concatenate, zip(*self._hits, strict=True)))


class Builder:
    """The words of chunks in their order. Not thread-safe.

    lengths: number of words of each chunk
    words: of all fields
    identifiers: whole, in bodies
    """

    def __init__(self) -> None:
        self.lengths: NDArray[np.uint32] = np.zeros(0, np.uint32)
        self.words = Table()
        self.identifiers = Table()
        self._runs = Vocabulary()
        # The words of each run of characters, one run after the other.
        self._parts = np.zeros(0, np.int32)
        self._part_counts = np.zeros(0, np.int32)
        self._is_identifier = np.zeros(0, bool)

    def add(self, records: Sequence[ChunkRecord]) -> None:
        texts = map(runs, chain.from_iterable(map(_fields, records)))
        found = Terms.of(texts, self._runs)
        self._split(found.names[len(self._part_counts) :])
        places, counts = expand(self._part_counts, found.numbers)
        ends = np.concatenate(([0], np.cumsum(counts)))[np.cumsum(found.sizes)]
        sizes = np.diff(ends, prepend=0)
        self._add_identifiers(found)
        self._add_words(Terms([], self._parts[places], sizes))
        lengths = sizes.reshape(-1, len(FIELDS)).sum(axis=1)
        self.lengths = np.concatenate((self.lengths, lengths), dtype=np.uint32, casting="unsafe")

    def _split(self, new: Sequence[str]) -> None:
        """Number the words of runs that had no number."""
        # Most runs of a part are new: to remember their words costs more than it saves.
        words = list(map(words_in, new))
        counts = np.fromiter(map(len, words), np.int32, len(words))
        number_of = self.words.names.__getitem__
        numbers = map(number_of, chain.from_iterable(words))
        self._parts = np.concatenate((self._parts, np.fromiter(numbers, np.int32)))
        self._part_counts = np.concatenate((self._part_counts, counts))
        identifiers = np.fromiter(map(is_identifier, new), bool, len(new))
        self._is_identifier = np.concatenate((self._is_identifier, identifiers))

    def _add_identifiers(self, found: Terms) -> None:
        """Add the identifiers in bodies."""
        text = found.texts
        chosen = (text % len(FIELDS) == FIELDS.index("body")) & self._is_identifier[found.numbers]
        run, chunk, times = pairs(found.numbers[chosen], text[chosen] // len(FIELDS))
        used, places = np.unique(run, return_inverse=True)
        names = (found.names[number] for number in used.tolist())
        numbers = np.fromiter(map(self.identifiers.names.__getitem__, names), np.int32)
        self.identifiers.add(numbers[places], len(self.lengths) + chunk, np.ones_like(times))

    def _add_words(self, words: Terms) -> None:
        word, text, times = pairs(words.numbers, words.texts)
        chunk, field = np.divmod(text, len(FIELDS))
        weighted = np.minimum(times, _MAX_COUNT) * _WEIGHTS[field]
        # The fields of a chunk follow each other.
        starts = np.flatnonzero(np.diff(word, prepend=-1) | np.diff(chunk, prepend=-1))
        times = np.add.reduceat(weighted, starts) if len(starts) else weighted
        self.words.add(word[starts], len(self.lengths) + chunk[starts], times)


def _fields(record: ChunkRecord) -> tuple[str, ...]:
    """Return the texts of a chunk in the order of FIELDS."""
    assert FIELDS == ("body", "path", "names", "symbol")
    chunk = record.chunk
    return chunk.text, record.path, " ".join(chunk.names), chunk.symbol
