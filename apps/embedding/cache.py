"""What embedding servers have answered, so that no text is sent to one twice.

A branch that is switched back to, a second checkout, a run that was cancelled half-way, a folder
that is embedded anew: they hold chunks whose vectors were paid for once. The built-in embedder has
no use for it, since it makes a vector sooner than a disk finds one.

It is a convenience and never a need: what it cannot read is embedded, what it cannot keep is lost.
"""

import logging
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

import numpy as np

from apps.core.sqlite_files import is_broken, open_file, remove_file
from apps.embedding.types import Embedder, EmbeddingText, Vectors

logger = logging.getLogger("codeinfo.ingest")

PROBE = EmbeddingText("def area(width, height):\n    return width * height", path="probe.py")
# Of a vector and itself, embedded again in other company: servers round.
SAME_COSINE = 0.999
KEYS_AT_ONCE = 500
DAY_SECONDS = 86_400
# One in so many goes when the file is full, the longest unused first.
DROPPED = 10

_TABLES = """
CREATE TABLE IF NOT EXISTS vector (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    model TEXT NOT NULL,
    used INTEGER NOT NULL,
    numbers BLOB NOT NULL
)
"""


class VectorCache:
    """The vectors that one model of one server has given, in a file that all of them share.

    `model` names both; `limit` is the size of the file in bytes, about which it stays. Safe from
    any thread and process.
    """

    def __init__(self, path: Path, model: str, limit: int) -> None:
        self._path = path
        self._model = model
        self._limit = limit

    def read(self, texts: Sequence[str]) -> dict[int, Vectors]:
        """The vectors that are known, by the place of their text."""
        places = {self._key(text): place for place, text in enumerate(texts)}
        known: dict[int, Vectors] = {}
        with self._forgiving(), self._database() as database:
            for keys in _slices(list(places)):
                asked = f"key IN ({','.join('?' * len(keys))})"
                found = database.execute(f"SELECT key, numbers FROM vector WHERE {asked}", keys)
                known |= {places[key]: np.frombuffer(row, np.float32) for key, row in found}
                # To the day: a row that is read again and again is not written each time.
                fresh = [_today(), *keys, _today()]
                database.execute(f"UPDATE vector SET used = ? WHERE {asked} AND used < ?", fresh)
        return known

    def write(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Keep the vectors of some texts, shape (len(texts), dimension)."""
        rows = (
            (self._key(text), self._model, _today(), vector.astype(np.float32).tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        )
        with self._forgiving(), self._database() as database:
            database.execute("BEGIN IMMEDIATE")
            database.executemany(
                "INSERT OR REPLACE INTO vector (key, model, used, numbers) VALUES (?, ?, ?, ?)",
                rows,
            )
            if _size(database) > self._limit:
                database.execute(
                    "DELETE FROM vector WHERE id IN (SELECT id FROM vector ORDER BY used, id"
                    " LIMIT 1 + (SELECT count(*) FROM vector) / ?)",
                    [DROPPED],
                )
            database.execute("COMMIT")

    def forget(self) -> None:
        """Drop all that this model has given."""
        with self._forgiving(), self._database() as database:
            database.execute("DELETE FROM vector WHERE model = ?", [self._model])

    def _key(self, text: str) -> bytes:
        return sha256(f"{self._model}\0{text}".encode("utf-8", "surrogatepass")).digest()

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(open_file(self._path, "rwc")) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute(_TABLES)
            yield database

    @contextmanager
    def _forgiving(self) -> Iterator[None]:
        """A failure ends the block and is logged; a broken file is removed."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            logger.warning("vector cache failed", extra={"context": {"reason": str(error)}})
            if is_broken(error):
                remove_file(self._path)


class CachedEmbedder:
    """An embedder that asks its server only for what it has not given before.

    One text, always the same, is sent once all the same: where the server gives it another vector
    than before, the name stands for another model, and all that the old one gave is forgotten.
    """

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        self._embedder = embedder
        self._cache = cache
        self._proven = False

    @property
    def id(self) -> str:
        return self._embedder.id

    @property
    def max_tokens(self) -> int | None:
        return self._embedder.max_tokens

    def embed_documents(self, texts: Sequence[EmbeddingText]) -> Vectors:
        if not self._proven:
            self._prove()
        joined = [text.joined() for text in texts]
        known = self._cache.read(joined)
        missing = [place for place in range(len(texts)) if place not in known]
        if known and not missing:
            return np.stack([known[place] for place in range(len(texts))])
        made = self._embedder.embed_documents([texts[place] for place in missing])
        self._cache.write([joined[place] for place in missing], made)
        vectors = np.empty((len(texts), made.shape[1]), np.float32)
        vectors[missing] = made
        for place, vector in known.items():
            vectors[place] = vector
        return vectors

    def _prove(self) -> None:
        """See to it that what is known is what the server gives."""
        now = self._embedder.embed_documents([PROBE])
        before = self._cache.read([PROBE.joined()]).get(0)
        if before is None or not _same(before, now[0]):
            self._cache.forget()
            self._cache.write([PROBE.joined()], now)
        self._proven = True

    def embed_query(self, text: str) -> Vectors:
        return self._embedder.embed_query(text)

    def close(self) -> None:
        self._embedder.close()


def _same(one: Vectors, other: Vectors) -> bool:
    if one.shape != other.shape:
        return False
    return bool(one @ other >= SAME_COSINE * np.linalg.norm(one) * np.linalg.norm(other))


def _slices(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (keys[at : at + KEYS_AT_ONCE] for at in range(0, len(keys), KEYS_AT_ONCE))


def _today() -> int:
    return int(time.time()) // DAY_SECONDS


def _size(database: sqlite3.Connection) -> int:
    """Bytes that hold something."""
    pragmas = ("page_count", "freelist_count", "page_size")
    pages, free, size = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas)
    return int((pages - free) * size)
