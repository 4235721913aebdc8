"""The postings of some chunks in memory, with the part of BM25 that no query changes computed."""

import sqlite3
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.index.lexical import scoring
from apps.index.lexical.encoding import TIMES_BITS, HitLists, decode
from apps.index.lexical.scoring import Scores

# Rows of `posting` that are read together.
WORDS_AT_ONCE = 50_000


@dataclass(frozen=True)
class Postings:
    """Postings by row of a `Contents`, scored as an index of these chunks alone would.

    places: word → its index i
    bounds: hits of word i are `bounds[i]` to `bounds[i + 1]`
    rows: int32 (hits,), the row of each hit's chunk
    term_scores: float32 (hits,), what the hit adds to that chunk's score (`scoring`)
    size: number of rows
    chunks: number of rows that have any word
    """

    places: Mapping[str, int]
    bounds: "array[int]"
    rows: NDArray[np.int32]
    term_scores: Scores
    size: int
    chunks: int

    def scores(self, words: Iterable[str]) -> Scores:
        """Return the score of each row for these distinct words, float32 (size,)."""
        scores = np.zeros(self.size, np.float32)
        ranges = [self._hits(word) for word in words if word in self.places]
        for hits in scoring.drop_stopwords(ranges, self.chunks):
            part = slice(hits.start, hits.stop)
            scores[self.rows[part]] += self.term_scores[part]
        return scores

    def counts(self, words: Iterable[str]) -> dict[str, int]:
        """Return the document frequency of each word that any row contains."""
        return {word: len(self._hits(word)) for word in words if word in self.places}

    def _hits(self, word: str) -> range:
        place = self.places[word]
        return range(self.bounds[place], self.bounds[place + 1])


def of_rows(database: sqlite3.Connection, numbers: NDArray[np.intp]) -> Postings:
    """Read the postings of the chunks of these ascending numbers; row i is `numbers[i]`."""
    first, lengths, _ = scoring.concatenate(database.execute("SELECT * FROM segment").fetchall())
    row_of = np.full(len(lengths), -1, np.int32)
    row_of[numbers - first] = np.arange(len(numbers))
    words, rows, times, word_of = _hits_of(database, row_of, first)
    counts = np.bincount(word_of, minlength=len(words))
    norms, chunks = scoring.norms(lengths[numbers - first])
    return Postings(
        places={word: place for place, word in enumerate(words) if counts[place]},
        bounds=array("q", [0, *counts.cumsum().tolist()]),
        rows=rows,
        term_scores=scoring.term_scores(
            times, norms[rows], counts[word_of].astype(np.float64), chunks
        ),
        size=len(numbers),
        chunks=chunks,
    )


def _hits_of(
    database: sqlite3.Connection, row_of: NDArray[np.int32], first: int
) -> tuple[Sequence[str], NDArray[np.int32], NDArray[np.uint16], NDArray[np.int32]]:
    """Return all words, and the hits of the chunks that have a row, by word: row, weighted tf and
    the index of the word, each of shape (hits,).

    row_of: row of each chunk from number `first` on; -1 if it has none
    """
    places: dict[str, int] = {}
    parts = [(np.zeros(0, np.int32), np.zeros(0, np.uint16), np.zeros(0, np.int32))]
    found = database.execute(
        "SELECT word, first, hits FROM segment CROSS JOIN posting ON segment = segment.id"
        " ORDER BY word"
    )
    while batch := found.fetchmany(WORDS_AT_ONCE):
        lists = decoded([(start, blob) for _, start, blob in batch], "posting")
        of_list = np.array([places.setdefault(word, len(places)) for word, *_ in batch], np.int32)
        rows = row_of[lists.chunks - first]
        chosen = rows >= 0
        word_of = np.repeat(of_list, lists.sizes)
        parts.append((rows[chosen], lists.times[chosen].astype(np.uint16), word_of[chosen]))
    rows, times, word_of = (np.concatenate(part) for part in zip(*parts, strict=True))
    return list(places), rows, times, word_of


def decoded(rows: Sequence[tuple[int, bytes]], table: str) -> HitLists:
    """Read the hits of rows of a table: first chunk of the segment, and hits."""
    firsts = np.array([first for first, _ in rows], np.intp)
    return decode([hits for _, hits in rows], firsts, TIMES_BITS[table])
