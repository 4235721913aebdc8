"""The postings of some chunks in memory, with the part of BM25 that no query changes computed."""

import sqlite3
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.index.lexical import scoring
from apps.index.lexical.scoring import HIT, Scores


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
    words, hits, word_of = _all_hits(database)
    rows = row_of[hits["chunk"].astype(np.intp) - first]
    selected = rows >= 0
    rows, hits, word_of = rows[selected], hits[selected], word_of[selected]
    counts = np.bincount(word_of, minlength=len(words))
    norms, chunks = scoring.norms(lengths[numbers - first])
    return Postings(
        places={word: place for place, word in enumerate(words) if counts[place]},
        bounds=array("q", [0, *counts.cumsum().tolist()]),
        rows=rows,
        term_scores=scoring.term_scores(
            hits, norms[rows], counts[word_of].astype(np.float64), chunks
        ),
        size=len(numbers),
        chunks=chunks,
    )


def _all_hits(
    database: sqlite3.Connection,
) -> tuple[Sequence[str], NDArray[np.void], NDArray[np.int32]]:
    """Return all words, the hits of all words in this order, and the index of each hit's word,
    int32 (hits,)."""
    places: dict[str, int] = {}
    postings = [
        (places.setdefault(word, len(places)), blob)
        for word, blob in database.execute("SELECT word, hits FROM posting ORDER BY word")
    ]
    of_blob = np.array([place for place, _ in postings], np.int32)
    sizes = np.array([len(blob) for _, blob in postings], np.intp) // HIT.itemsize
    hits = np.frombuffer(b"".join(blob for _, blob in postings), HIT)
    return list(places), hits, np.repeat(of_blob, sizes)
