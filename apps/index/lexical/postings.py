"""The words of some chunks in memory, scored as far as a question does not matter for it."""

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
    """A chunk is a row, as in the Contents that this is of. A hit is the row of a chunk and what a
    word of it adds to its BM25 score (`scoring`), in an index that holds these chunks and no
    others; those of the word at place i are the hits from `bounds[i]` to `bounds[i + 1]`."""

    places: Mapping[str, int]
    bounds: "array[int]"
    rows: NDArray[np.int32]
    shares: Scores
    size: int  # rows
    chunks: int  # those of them that have a word

    def scores(self, words: Iterable[str]) -> Scores:
        """The score of every row for these distinct words; 0 where it has none of them."""
        scores = np.zeros(self.size, np.float32)
        found = [self._hits(word) for word in words if word in self.places]
        for hits in scoring.telling(found, self.chunks):
            part = slice(hits.start, hits.stop)
            scores[self.rows[part]] += self.shares[part]
        return scores

    def counts(self, words: Iterable[str]) -> dict[str, int]:
        """How many rows have each word; those that none has are left out."""
        return {word: len(self._hits(word)) for word in words if word in self.places}

    def _hits(self, word: str) -> range:
        place = self.places[word]
        return range(self.bounds[place], self.bounds[place + 1])


def of_rows(database: sqlite3.Connection, numbers: NDArray[np.intp]) -> Postings:
    """The words of the chunks of these numbers, which go up; their rows are in that order."""
    first, lengths, _ = scoring.spread(database.execute("SELECT * FROM segment").fetchall())
    row_of = np.full(len(lengths), -1, np.int32)
    row_of[numbers - first] = np.arange(len(numbers))
    words, hits, word_of = _all_hits(database)
    rows = row_of[hits["chunk"].astype(np.intp) - first]
    wanted = rows >= 0
    rows, hits, word_of = rows[wanted], hits[wanted], word_of[wanted]
    counts = np.bincount(word_of, minlength=len(words))
    norms, chunks = scoring.norms(lengths[numbers - first])
    return Postings(
        places={word: place for place, word in enumerate(words) if counts[place]},
        bounds=array("q", [0, *counts.cumsum().tolist()]),
        rows=rows,
        shares=scoring.shares(hits, norms[rows], counts[word_of].astype(np.float64), chunks),
        size=len(numbers),
        chunks=chunks,
    )


def _all_hits(
    database: sqlite3.Connection,
) -> tuple[Sequence[str], NDArray[np.void], NDArray[np.int32]]:
    """All words, the hits of all of them in this order, and the place of each one's word."""
    places: dict[str, int] = {}
    found = [
        (places.setdefault(word, len(places)), blob)
        for word, blob in database.execute("SELECT word, hits FROM posting ORDER BY word")
    ]
    of_blob = np.array([place for place, _ in found], np.int32)
    sizes = np.array([len(blob) for _, blob in found], np.intp) // HIT.itemsize
    hits = np.frombuffer(b"".join(blob for _, blob in found), HIT)
    return list(places), hits, np.repeat(of_blob, sizes)
