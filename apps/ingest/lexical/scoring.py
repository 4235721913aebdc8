"""BM25 over the postings of a root, with a weight for each field a word may stand in.

score = Σ over the words:  idf · f·(K1 + 1) / (f + K1·(1 − B + B·length / mean length))
f = Σ over the fields: weight · how often the word stands in it
idf = ln(1 + (N − n + ½) / (n + ½)),  n of the N chunks have the word
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.ingest.types import Filters

# The fields in the order in which postings count them.
FIELDS = ("body", "path", "names", "symbol")
# A word in the path or in a declared name says more of what a chunk is about than one in its text.
WEIGHTS: Mapping[str, float] = {"body": 1.0, "path": 2.0, "names": 2.0, "symbol": 2.0}
K1 = 1.2
B = 0.75
# A word that stands in more of the chunks than this tells them apart hardly, and costs most: it is
# left out where a rarer one is asked for as well.
COMMON = 0.4

# One posting: where a word stands, and how often in each field.
HIT = np.dtype([("row", "<u4"), ("times", "u1", (len(FIELDS),))])
Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Snapshot:
    """What is needed of all chunks, at positions 0, 1, … in the order of their numbers."""

    writes: int
    starts: Mapping[int, int]  # the position at which each segment begins
    numbers: NDArray[np.int64]
    files: NDArray[np.uint32]
    norms: Scores  # K1·(…) of the formula; infinite where a row has been deleted
    live: int


def writes(database: sqlite3.Connection) -> int:
    (number,) = database.execute("SELECT writes FROM state").fetchone()
    return int(number)


def snapshot(database: sqlite3.Connection) -> Snapshot:
    starts: dict[int, int] = {}
    numbers, lengths, files = [np.zeros(0, np.int64)], [b""], [b""]
    position = 0
    for segment, length, file in database.execute("SELECT * FROM segment ORDER BY id"):
        starts[segment] = position
        rows = len(length) // 4
        numbers.append((segment << 32) + np.arange(rows, dtype=np.int64))
        lengths.append(length)
        files.append(file)
        position += rows
    words = np.frombuffer(b"".join(lengths), "<u4").astype(np.float32)
    live = words > 0
    mean = float(words[live].mean()) if live.any() else 1.0
    norms = np.where(live, K1 * (1 - B + B * words / mean), np.inf).astype(np.float32)
    return Snapshot(
        writes=writes(database),
        starts=starts,
        numbers=np.concatenate(numbers),
        files=np.frombuffer(b"".join(files), "<u4"),
        norms=norms,
        live=int(live.sum()),
    )


def best(
    database: sqlite3.Connection,
    seen: Snapshot,
    words: Sequence[str],
    n: int,
    where: Filters | None,
) -> list[tuple[int, float]]:
    """Number and score of the n best chunks that have any of the words, best first; of equal ones
    the first written."""
    scores = _scores(seen, _postings(database, seen, words))
    allowed = _allowed_files(database, where)
    if allowed is not None:
        scores[~np.isin(seen.files, allowed)] = 0
    found = np.flatnonzero(scores)
    if len(found) > n:
        least = np.partition(scores[found], -n)[-n]
        found = found[scores[found] >= least]
    found = found[np.argsort(-scores[found], kind="stable")][:n]
    return list(zip(seen.numbers[found].tolist(), scores[found].tolist(), strict=True))


def frequencies(database: sqlite3.Connection, words: Sequence[str]) -> dict[str, int]:
    """How many hits each word has."""
    rows = database.execute(
        "SELECT word, sum(length(hits)) FROM posting"
        " WHERE word IN (SELECT value FROM json_each(?)) GROUP BY word",
        (json.dumps(list(words)),),
    )
    return {word: size // HIT.itemsize for word, size in rows}


def _postings(
    database: sqlite3.Connection, seen: Snapshot, words: Sequence[str]
) -> list[tuple[NDArray[np.int64], NDArray[Any]]]:
    """Positions and counts of each word that is anywhere."""
    rows = database.execute(
        # CROSS: in this order, each posting is found by its key.
        "SELECT word, segment.id, hits FROM json_each(?) AS asked CROSS JOIN segment"
        " CROSS JOIN posting ON posting.segment = segment.id AND posting.word = asked.value",
        (json.dumps(list(dict.fromkeys(words))),),
    )
    found: dict[str, tuple[list[int], list[bytes]]] = {}
    for word, segment, hits in rows:
        starts, blobs = found.setdefault(word, ([], []))
        starts.append(seen.starts[segment])
        blobs.append(hits)
    return [_positioned(starts, blobs) for starts, blobs in found.values()]


def _positioned(starts: list[int], blobs: list[bytes]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    hits = np.frombuffer(b"".join(blobs), HIT)
    sizes = [len(blob) // HIT.itemsize for blob in blobs]
    return hits["row"] + np.repeat(starts, sizes), hits["times"]


def _scores(seen: Snapshot, postings: Sequence[tuple[NDArray[np.int64], NDArray[Any]]]) -> Scores:
    """The score of every position."""
    scores = np.zeros(len(seen.norms), np.float32)
    weights = np.array([WEIGHTS[field] for field in FIELDS], np.float32)
    rare = [each for each in postings if len(each[0]) <= COMMON * seen.live]
    for positions, times in rare or postings:
        idf = np.log(1 + (seen.live - len(positions) + 0.5) / (len(positions) + 0.5))
        often = times.astype(np.float32) @ weights
        scores[positions] += (idf * (K1 + 1)) * often / (often + seen.norms[positions])
    return scores


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
