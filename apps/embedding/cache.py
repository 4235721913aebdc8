"""A cache of the vectors that embedding servers return, so that no text is sent twice.

It helps when a branch is checked out again, with a second checkout, after a cancelled run, and when
a folder is embedded again. The built-in embedder does not use it: computing a vector is faster than
reading it from disk.

A failure of the cache never fails a call: a vector that cannot be read is embedded again, one that
cannot be written is not cached.
"""

import logging
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

import numpy as np

from apps.core.data.sqlite_files import is_broken, open_file, remove_file
from apps.core.values.slices import slices
from apps.embedding.types import Embedder, EmbeddingText, Vectors

logger = logging.getLogger("codeinfo.ingest")

PROBE = EmbeddingText("def area(width, height):\n    return width * height", path="probe.py")
# Cosine of two vectors of the same text by the same model. Servers round, depending on the batch.
SAME_COSINE = 0.999
KEYS_PER_QUERY = 500
DAY_SECONDS = 86_400
# A full file loses 1 in EVICTED of its rows, the least recently used.
EVICTED = 10

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
    """The cached vectors of one model of one server. All models share a file.

    `model` identifies model and server. `limit` is the approximate size of the file in bytes. Safe
    to use from any thread and process.
    """

    def __init__(self, path: Path, model: str, limit: int) -> None:
        self._path = path
        self._model = model
        self._limit = limit

    def read(self, texts: Sequence[str]) -> dict[int, Vectors]:
        """The cached vectors, float32 (dimension,), by the index of their text."""
        indexes = {self._key(text): index for index, text in enumerate(texts)}
        cached: dict[int, Vectors] = {}
        with self._errors_logged(), self._database() as database:
            for keys in slices(indexes, KEYS_PER_QUERY):
                where = f"key IN ({','.join('?' * len(keys))})"
                rows = database.execute(f"SELECT key, numbers FROM vector WHERE {where}", keys)
                cached |= {indexes[key]: np.frombuffer(row, np.float32) for key, row in rows}
                # In days, so that a row is written once a day and not at each read.
                values = [today(), *keys, today()]
                database.execute(f"UPDATE vector SET used = ? WHERE {where} AND used < ?", values)
        return cached

    def write(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Cache the vectors of texts, float32 (len(texts), dimension)."""
        rows = (
            (self._key(text), self._model, today(), vector.astype(np.float32).tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        )
        with self._errors_logged(), self._database() as database:
            database.execute("BEGIN IMMEDIATE")
            database.executemany(
                "INSERT OR REPLACE INTO vector (key, model, used, numbers) VALUES (?, ?, ?, ?)",
                rows,
            )
            if _size(database) > self._limit:
                database.execute(
                    "DELETE FROM vector WHERE id IN (SELECT id FROM vector ORDER BY used, id"
                    " LIMIT 1 + (SELECT count(*) FROM vector) / ?)",
                    [EVICTED],
                )
            database.execute("COMMIT")

    def clear(self) -> None:
        """Delete the vectors of this model."""
        with self._errors_logged(), self._database() as database:
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
    def _errors_logged(self) -> Iterator[None]:
        """Log a failure of the block instead of raising it, and remove a broken file."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            logger.warning("vector cache failed", extra={"context": {"reason": str(error)}})
            if is_broken(error):
                remove_file(self._path)


class CachedEmbedder:
    """An embedder of a server with a cache.

    The first call also embeds PROBE. If its vector differs from the cached one, the server has
    another model under the same name, and the cache of the model is cleared.
    """

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        self._embedder = embedder
        self._cache = cache
        self._is_checked = False

    @property
    def id(self) -> str:
        return self._embedder.id

    @property
    def max_tokens(self) -> int | None:
        return self._embedder.max_tokens

    @property
    def cut_texts(self) -> int:
        return self._embedder.cut_texts

    def embed_documents(self, texts: Sequence[EmbeddingText]) -> Vectors:
        if not self._is_checked:
            self._check_model()
        joined = [text.joined() for text in texts]
        cached = self._cache.read(joined)
        missing = [index for index in range(len(texts)) if index not in cached]
        if cached and not missing:
            return np.stack([cached[index] for index in range(len(texts))])
        cut = self.cut_texts
        new = self._embedder.embed_documents([texts[index] for index in missing])
        if self.cut_texts == cut:
            # The vector of a part of a text must not outlive the server's limit.
            self._cache.write([joined[index] for index in missing], new)
        vectors = np.empty((len(texts), new.shape[1]), np.float32)
        vectors[missing] = new
        for index, vector in cached.items():
            vectors[index] = vector
        return vectors

    def _check_model(self) -> None:
        """Clear the cache if its vectors are not those of the server's model."""
        current = self._embedder.embed_documents([PROBE])
        cached = self._cache.read([PROBE.joined()]).get(0)
        if cached is None or not _same(cached, current[0]):
            self._cache.clear()
            self._cache.write([PROBE.joined()], current)
        self._is_checked = True

    def embed_query(self, text: str) -> Vectors:
        return self._embedder.embed_query(text)

    def close(self) -> None:
        self._embedder.close()


def _same(one: Vectors, other: Vectors) -> bool:
    if one.shape != other.shape:
        return False
    return bool(one @ other >= SAME_COSINE * np.linalg.norm(one) * np.linalg.norm(other))


def today() -> int:
    return int(time.time()) // DAY_SECONDS


def _size(database: sqlite3.Connection) -> int:
    """Bytes of the pages in use."""
    pragmas = ("page_count", "freelist_count", "page_size")
    pages, free, size = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas)
    return int((pages - free) * size)
