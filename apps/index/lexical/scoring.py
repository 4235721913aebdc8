"""BM25F over the postings of a root (Robertson and Zaragoza, "The Probabilistic Relevance
Framework", 2009).

score = Σ over the words:  idf · tf·(K1 + 1) / (tf + K1·(1 − B + B·length / mean length))
tf    = Σ over the fields: weight · occurrences of the word in the field
idf   = ln(1 + (N − n + ½) / (n + ½)),  where n of N chunks contain the word
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from apps.index.globs import area_patterns, patterns
from apps.index.lexical.encoding import TIMES_BITS, HitLists, Numbers, decode
from apps.index.types import Filters

# The fields in the order in which postings count them.
FIELDS = ("body", "path", "names", "symbol")
# A word in the path or in a declared name tells more about a chunk than a word in its text.
WEIGHTS: Mapping[str, float] = {"body": 1.0, "path": 2.0, "names": 2.0, "symbol": 2.0}
K1 = 1.2
B = 0.75
# A word in a larger share of the chunks is a stop word: it hardly separates them and costs most.
# It is dropped if the query has a rarer word.
STOPWORD_SHARE = 0.4
# A word that fewer chunks contain is no stop word.
MIN_STOPWORD_CHUNKS = 1_000

# CROSS: in this order, each posting is found by its key.
_POSTINGS = (
    "FROM json_each(?) AS query CROSS JOIN segment CROSS JOIN posting"
    " ON posting.segment = segment.id AND posting.word = query.value"
)
Scores = NDArray[np.float32]
PostingsT = TypeVar("PostingsT", bound=Sized)


@dataclass
class EncodedHits:
    """The hits of a word, as they are stored in some segments. Its length is the number of hits."""

    size: int = 0
    firsts: list[int] = field(default_factory=list)  # first chunk of each segment
    blobs: list[bytes] = field(default_factory=list)

    def __len__(self) -> int:
        return self.size

    @cached_property
    def decoded(self) -> HitLists:
        return decode(self.blobs, np.array(self.firsts), TIMES_BITS["posting"])


@dataclass(frozen=True)
class Snapshot:
    """Lengths and files of all chunks; index i is chunk number `first` + i.

    files: uint32 (n,), the number of each chunk's file; 0 for a deleted chunk
    norms: float32 (n,), as `norms` returns them
    live: number of chunks that are not deleted
    documents: if it is not None, chunks of other documents count as deleted
    stale: whether there may be hits of deleted chunks
    """

    writes: int  # `state` of the index when it was read
    edition: int
    first: int
    files: NDArray[np.uint32]
    norms: Scores
    live: int
    documents: frozenset[str] | None = None
    stale: bool = False

    @property
    def hides_hits(self) -> bool:
        """Whether some of the stored hits do not count."""
        return self.stale or self.documents is not None


@dataclass(frozen=True)
class ReadableHits:
    """The hits of a word that count. Its length is their number."""

    decoded: HitLists

    def __len__(self) -> int:
        return len(self.decoded.chunks)


def state(database: sqlite3.Connection) -> tuple[int, int]:
    """Return the number of writes and the edition of an index (`schema`)."""
    writes, edition = database.execute("SELECT writes, edition FROM state").fetchone()
    return writes, edition


def read_snapshot(
    database: sqlite3.Connection, documents: frozenset[str] | None = None
) -> Snapshot:
    first, lengths, files = concatenate(database.execute("SELECT * FROM segment").fetchall())
    if documents is not None:
        rows = database.execute("SELECT id, source_file FROM file")
        readable = np.isin(files, [number for number, each in rows if each in documents])
        lengths, files = lengths * readable, files * readable
    stale = database.execute("SELECT 1 FROM stale").fetchone() is not None
    return Snapshot(*state(database), first, files, *norms(lengths), documents, stale)


def norms(lengths: NDArray[np.uint32]) -> tuple[Scores, int]:
    """Return K1·(…) of the formula for chunks of these lengths (float32, infinite where the length
    is 0), and the number of chunks whose length is above 0."""
    live = lengths > 0
    mean = lengths[live].mean() if live.any() else 1.0
    norms = np.where(live, K1 * (1 - B + B * lengths / mean), np.inf).astype(np.float32)
    return norms, int(live.sum())


def concatenate(
    segments: Sequence[tuple[int, int, bytes, bytes]],
) -> tuple[int, NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the lowest chunk number of the segments, and length and file of each chunk from that
    number on, uint32 (n,)."""
    first = min((segment[1] for segment in segments), default=0)
    end = max((segment[1] + len(segment[2]) // 4 for segment in segments), default=0)
    lengths, files = np.zeros((2, end - first), np.uint32)
    for _, start, some_lengths, some_files in segments:
        part = slice(start - first, start - first + len(some_lengths) // 4)
        lengths[part] = np.frombuffer(some_lengths, "<u4")
        files[part] = np.frombuffer(some_files, "<u4")
    return first, lengths, files


def best(
    database: sqlite3.Connection,
    snapshot: Snapshot,
    postings: Iterable[EncodedHits],
    n: int,
    where: Filters | None,
) -> tuple[NDArray[np.intp], Scores]:
    """Return numbers and scores of the n best chunks, best first; ties in written order."""
    scores = _scores(snapshot, list(postings))
    allowed = _allowed_files(database, where)
    if allowed is not None:
        scores[~np.isin(snapshot.files, allowed)] = 0
    chunks = np.flatnonzero(scores)
    if len(chunks) > n:
        nth_best = np.partition(scores[chunks], -n)[-n]
        chunks = chunks[scores[chunks] >= nth_best]
    chunks = chunks[np.argsort(-scores[chunks], kind="stable")][:n]
    return chunks + snapshot.first, scores[chunks]


def frequencies(
    database: sqlite3.Connection, snapshot: Snapshot, words: Sequence[str]
) -> dict[str, int]:
    """Return the document frequency of each word that any chunk contains."""
    if snapshot.hides_hits:
        found = postings(database, words)
        counts = {word: len(_readable(hits, snapshot)) for word, hits in found.items()}
        return {word: count for word, count in counts.items() if count}
    rows = database.execute(f"SELECT word, sum(chunks) {_POSTINGS} GROUP BY word", _as_json(words))
    return dict(rows.fetchall())


def postings(database: sqlite3.Connection, words: Sequence[str]) -> dict[str, EncodedHits]:
    """Return the postings of each word that any chunk contains, in the order of `words`."""
    found: dict[str, EncodedHits] = {}
    rows = database.execute(f"SELECT word, chunks, first, hits {_POSTINGS}", _as_json(words))
    for word, chunks, first, blob in rows:
        hits = found.setdefault(word, EncodedHits())
        hits.size += chunks
        hits.firsts.append(first)
        hits.blobs.append(blob)
    return found


def _as_json(words: Sequence[str]) -> tuple[str]:
    return (json.dumps(list(dict.fromkeys(words))),)


def _scores(snapshot: Snapshot, postings: Sequence[EncodedHits]) -> Scores:
    """Return the score of every chunk, float32 (n,); 0 where it has no word of the query."""
    scores = np.zeros(len(snapshot.norms), np.float32)
    hits_of: Sequence[EncodedHits | ReadableHits] = postings
    if snapshot.hides_hits:
        readable = [_readable(each, snapshot) for each in postings]
        hits_of = [each for each in readable if len(each)]
    for of_word in drop_stopwords(hits_of, snapshot.live):
        hits = of_word.decoded
        at = hits.chunks - snapshot.first
        count = np.float64(len(of_word))
        scores[at] += term_scores(hits.times, snapshot.norms[at], count, snapshot.live)
    return scores


def _readable(encoded: EncodedHits, snapshot: Snapshot) -> ReadableHits:
    """Return the hits in chunks that are not deleted, of the snapshot's documents."""
    hits = encoded.decoded
    stays = snapshot.files[hits.chunks - snapshot.first] > 0
    sizes = np.array([np.count_nonzero(stays)])
    return ReadableHits(HitLists(sizes, hits.chunks[stays], hits.times[stays]))


def drop_stopwords(postings: Sequence[PostingsT], chunks: int) -> Sequence[PostingsT]:
    """Drop the postings of stop words, unless the query has no other word."""
    return [
        each for each in postings if len(each) <= max(MIN_STOPWORD_CHUNKS, STOPWORD_SHARE * chunks)
    ] or postings


def term_scores(
    times: Numbers, norms: Scores, counts: np.float64 | NDArray[np.float64], chunks: int
) -> Scores:
    """Return what each hit adds to its chunk's score, float32 (n,).

    times: weighted tf of each hit
    norms: `norms` of each hit's chunk
    counts: document frequency of each hit's word, among `chunks` chunks
    """
    weighted_tf = times.astype(np.float32)
    scores: Scores = idf(counts, chunks) * weighted_tf / (weighted_tf + norms)
    return scores


def idf(counts: np.float64 | NDArray[np.float64], chunks: int) -> Scores:
    """Return idf · (K1 + 1) of words with these document frequencies among `chunks` chunks."""
    factors: Scores = (np.log(1 + (chunks - counts + 0.5) / (counts + 0.5)) * (K1 + 1)).astype(
        np.float32
    )
    return factors


def _allowed_files(database: sqlite3.Connection, where: Filters | None) -> NDArray[np.int64] | None:
    """Return the numbers of the files that pass the filters; None if there is no filter."""
    if where is None or not (where.path or where.language or where.areas):
        return None
    globs = list(patterns(where.path))
    is_path = _is_any(globs)
    if where.areas:
        # This store knows no repositories: an area of another one holds none of its files.
        inside = [
            glob for each in where.areas if not each.repository for glob in area_patterns(each.path)
        ]
        is_path += f" AND {_is_any(inside)}"
        globs += inside
    rows = database.execute(
        f"SELECT id FROM file WHERE {is_path} AND ? IN ('', language)", (*globs, where.language)
    )
    return np.array([number for (number,) in rows], np.int64)


def _is_any(globs: Sequence[str]) -> str:
    return f"({' OR '.join(['path GLOB ?'] * len(globs)) or '0'})"
