"""BM25 over the postings of a root, with a weight for each field a word may stand in.

score = Σ over the words:  idf · f·(K1 + 1) / (f + K1·(1 − B + B·length / mean length))
f = Σ over the fields: weight · how often the word stands in it
idf = ln(1 + (N − n + ½) / (n + ½)),  n of the N chunks have the word
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from apps.index.types import Filters

# The fields in the order in which postings count them.
FIELDS = ("body", "path", "names", "symbol")
# A word in the path or in a declared name says more of what a chunk is about than one in its text.
WEIGHTS: Mapping[str, float] = {"body": 1.0, "path": 2.0, "names": 2.0, "symbol": 2.0}
K1 = 1.2
B = 0.75
# A word that stands in more of the chunks than this tells them apart hardly, and costs most: it is
# left out where a rarer one is asked for as well.
COMMON = 0.4
# In so few chunks no word costs much.
FEW = 1_000

# One posting: the number of a chunk, and how often the word stands in each of its fields.
HIT = np.dtype([("chunk", "<u4"), ("times", "u1", (len(FIELDS),))])
# CROSS: in this order, each posting is found by its key.
_POSTINGS = (
    "FROM json_each(?) AS asked CROSS JOIN segment CROSS JOIN posting"
    " ON posting.segment = segment.id AND posting.word = asked.value"
)
_FIELD_WEIGHTS = np.array([WEIGHTS[field] for field in FIELDS], np.float32)
Scores = NDArray[np.float32]
Hits = NDArray[Any]
Found = TypeVar("Found", bound=Sized)


@dataclass(frozen=True)
class Snapshot:
    """What is needed of all chunks; that of number `first` + i is at i."""

    writes: int
    edition: int
    first: int
    files: NDArray[np.uint32]
    norms: Scores  # as `norms` has it; infinite where there is no chunk
    live: int


def state(database: sqlite3.Connection) -> tuple[int, int]:
    """How often it was written, and which edition it is."""
    writes, edition = database.execute("SELECT writes, edition FROM state").fetchone()
    return writes, edition


def snapshot(database: sqlite3.Connection) -> Snapshot:
    first, lengths, files = spread(database.execute("SELECT * FROM segment").fetchall())
    return Snapshot(*state(database), first, files, *norms(lengths))


def norms(lengths: NDArray[np.uint32]) -> tuple[Scores, int]:
    """K1·(…) of the formula for chunks of these lengths, infinite for those that have none; and how
    many have one."""
    live = lengths > 0
    mean = lengths[live].mean() if live.any() else 1.0
    found = np.where(live, K1 * (1 - B + B * lengths / mean), np.inf).astype(np.float32)
    return found, int(live.sum())


def spread(
    segments: Sequence[tuple[int, int, bytes, bytes]],
) -> tuple[int, NDArray[np.uint32], NDArray[np.uint32]]:
    """The lowest number of the segments' chunks, and the length and file of all from there on."""
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
    seen: Snapshot,
    postings: Iterable[Hits],
    n: int,
    where: Filters | None,
) -> tuple[NDArray[np.intp], Scores]:
    """Numbers and scores of the n best chunks in any of the postings, best first; of equal ones the
    first written."""
    scores = _scores(seen, list(postings))
    allowed = _allowed_files(database, where)
    if allowed is not None:
        scores[~np.isin(seen.files, allowed)] = 0
    found = np.flatnonzero(scores)
    if len(found) > n:
        least = np.partition(scores[found], -n)[-n]
        found = found[scores[found] >= least]
    found = found[np.argsort(-scores[found], kind="stable")][:n]
    return found + seen.first, scores[found]


def frequencies(database: sqlite3.Connection, words: Sequence[str]) -> dict[str, int]:
    """How many chunks have each word; those that none has are left out."""
    rows = database.execute(
        f"SELECT word, sum(length(hits)) {_POSTINGS} GROUP BY word", _asked(words)
    )
    return {word: size // HIT.itemsize for word, size in rows}


def postings(database: sqlite3.Connection, words: Sequence[str]) -> dict[str, Hits]:
    """The postings of each word that is anywhere, in the order of the words."""
    found: dict[str, list[bytes]] = {}
    for word, hits in database.execute(f"SELECT word, hits {_POSTINGS}", _asked(words)):
        found.setdefault(word, []).append(hits)
    return {word: np.frombuffer(b"".join(blobs), HIT) for word, blobs in found.items()}


def _asked(words: Sequence[str]) -> tuple[str]:
    return (json.dumps(list(dict.fromkeys(words))),)


def _scores(seen: Snapshot, postings: Sequence[Hits]) -> Scores:
    """The score of every chunk."""
    scores = np.zeros(len(seen.norms), np.float32)
    for hits in telling(postings, seen.live):
        at = hits["chunk"].astype(np.intp) - seen.first
        count = np.float64(len(hits))
        scores[at] += shares(hits, seen.norms[at], count, seen.live)
    return scores


def telling(postings: Sequence[Found], chunks: int) -> Sequence[Found]:
    """Those that are no word of too many of all chunks, unless all are."""
    return [each for each in postings if len(each) <= max(FEW, COMMON * chunks)] or postings


def shares(
    hits: Hits, norms: Scores, counts: np.float64 | NDArray[np.float64], chunks: int
) -> Scores:
    """What each hit adds to the score of its chunk; `counts`: how many of all the chunks have the
    word of each."""
    often = hits["times"].astype(np.float32) @ _FIELD_WEIGHTS
    idf = np.log(1 + (chunks - counts + 0.5) / (counts + 0.5))
    found: Scores = (idf * (K1 + 1)).astype(np.float32) * often / (often + norms)
    return found


def _allowed_files(database: sqlite3.Connection, where: Filters | None) -> NDArray[np.int64] | None:
    """The numbers of the files that may answer; None where all may."""
    if where is None or not (where.path or where.language):
        return None
    # As SQLite has it, `*` stands for any characters, slashes too.
    pattern = where.path if any(mark in where.path for mark in "*?[") else f"{where.path}*"
    rows = database.execute(
        "SELECT id FROM file WHERE path GLOB ? AND ? IN ('', language)", (pattern, where.language)
    )
    return np.array([number for (number,) in rows], np.int64)
