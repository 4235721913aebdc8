"""The vector store: vectors of chunks in Chroma, one collection per root.

A row is an id and a vector. Texts and facts of chunks are elsewhere (`index.chunks`): Chroma 1.5
writes a row and two index entries for each metadata key.

Chroma runs one operation at a time, so writes are split into slices (`ingest_throttle`).

A broken collection does not affect the others. `examine` detects one, `set_aside` moves it away,
and `set_store_aside` moves away a store that is broken as a whole.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from apps.core.concurrency.ingest_throttle import ingest_throttle
from apps.core.config import config
from apps.core.errors import Unavailable
from apps.embedding.types import Vectors
from apps.index.changes import check_due
from apps.index.types import Check, Origin, never_cancelled
from apps.index.vectors import aside, chroma
from apps.index.vectors.collections import Collections
from apps.index.vectors.guarded import CollectionsClient, Guarded, are_unit_length
from apps.index.vectors.handles import pages
from apps.index.vectors.packing import description, origin_in, unit_rows
from apps.index.vectors.process import Embedded

READ_SLICE = 5_000
# A collection of up to MAX_DROPPED rows is dropped in one call, which takes a second. 250,000 rows
# took more than CALL_SECONDS on a busy machine, so further rows are deleted before, DROP_SLICE a
# call, which takes half a second.
MAX_DROPPED, DROP_SLICE = 20_000, 2_000


class VectorStore:
    """Reads and writes vectors. Thread-safe.

    Raises Unavailable with the code CHROMA_UNAVAILABLE if Chroma is unreachable or fails,
    CHROMA_CRASHED if it crashed, and CHROMA_BROKEN if the whole store is broken. A root without a
    collection is not an error: it is empty.
    """

    def __init__(self, client: CollectionsClient, prefix: str) -> None:
        self._client = Guarded(client)
        self._prefix = prefix

    def add(
        self,
        root_id: UUID,
        model: str,
        ids: Sequence[str],
        vectors: Vectors,
        origin: Origin | None = None,
    ) -> list[str]:
        """Add vectors. An id that exists is ignored.

        vectors: float32 (len(ids), dimension), of any length; stored at unit length
        origin: recorded in a new collection

        Return the ids that were refused: their vector is zero or not finite.
        """
        units, good = unit_rows(vectors)
        accepted = [each for each, is_good in zip(ids, good, strict=True) if is_good]
        units = units[good]
        name, about = self._name(root_id), description(root_id, model, units.shape[1], origin)
        for part in ingest_throttle.write_slices(len(accepted)):
            added = self._client.call(Collections.add, name, about, accepted[part], units[part])
            if added.is_next:
                # Of the shard before, which is written no more.
                self._client.free_memory()
        return [each for each, is_good in zip(ids, good, strict=True) if not is_good]

    def nearest(self, root_id: UUID, vector: Vectors, n: int) -> list[tuple[str, float]]:
        """Return id and distance of the n nearest, nearest first; empty for a zero vector.

        vector: float32 (dimension,), of any length; distances are 2 − 2·cos
        """
        units, good = unit_rows(vector.reshape(1, -1))
        if n < 1 or not good[0]:
            return []
        name = self._name(root_id)
        with ingest_throttle.foreground_call():
            return self._client.each(Collections.nearest, [(name, units[0], n)])[name]

    def examine(self, root_id: UUID) -> str:
        """Return why the collection of a root is broken; "" if it is not, or does not exist. Raises
        Unavailable if the cause is temporary, or the whole store is broken."""
        return self._client.examine(self._name(root_id))

    def set_aside(self, root_ids: Sequence[UUID]) -> Path | None:
        """Drop the broken collections of some roots. Return the folder that has their index files
        now; None if there are none, or Chroma is a server."""
        return self._client.set_aside([self._name(root_id) for root_id in root_ids])

    def audit(self, root_id: UUID, ids: Sequence[str]) -> tuple[list[str], Vectors]:
        """Return the ids that have a vector, and these vectors, float32 (n, d), also broken ones.
        Read without priority over ingest."""
        if not ids:
            return [], np.zeros((0, 0), np.float32)  # Chroma refuses an empty list
        existing, vectors = self._client.call(Collections.vectors, self._name(root_id), list(ids))
        if not are_unit_length(vectors):
            self._client.report_corrupt(self._name(root_id))
        return existing, vectors

    def each_id(self, root_id: UUID) -> Iterator[str]:
        """Yield all ids, read page by page."""
        name = self._name(root_id)
        return pages(
            lambda limit, offset: self._client.call(Collections.ids, name, limit, offset),
            READ_SLICE,
        )

    def delete(self, root_id: UUID, ids: Sequence[str], check: Check = never_cancelled) -> None:
        """Delete vectors. Unknown ids are ignored. `check` is called between slices: 100,000 ids
        take minutes."""
        for part in ingest_throttle.write_slices(len(ids)):
            check()
            self._client.call(Collections.delete, self._name(root_id), list(ids[part]))

    def ids(self, root_id: UUID) -> set[str]:
        return set(self.each_id(root_id))

    def count(self, root_id: UUID) -> int:
        return self._client.call(Collections.count, self._name(root_id))

    def drop(self, root_id: UUID, check: Check = never_cancelled) -> None:
        """Delete the collection of a root and its index files."""
        name = self._name(root_id)
        # A broken collection cannot be counted, but it can be dropped.
        with suppress(Unavailable):
            while self.count(root_id) > MAX_DROPPED:
                check()
                ids = self._client.call(Collections.ids, name, DROP_SLICE)
                self._client.call(Collections.delete, name, ids)
        self._client.call(Collections.drop, name)
        self.sweep()

    def sweep(self) -> list[str]:
        """Remove index folders of dropped collections (embedded only). Return their names."""
        return self._client.call(Collections.sweep)

    def paused(self) -> AbstractContextManager[Path | None]:
        """Yield the folder of an embedded Chroma, to copy it; None for a server. Other calls wait
        until the block ends."""
        return self._client.paused()

    def collections(self) -> set[UUID]:
        """Return the roots that have a collection."""
        return set(self.descriptions())

    def descriptions(self) -> dict[UUID, dict[str, Any]]:
        """Return root id → metadata of its collection (`packing.description`)."""
        start = f"{self._prefix}_"
        all_about = self._client.call(Collections.descriptions).items()
        ours = {
            name.removeprefix(start): about for name, about in all_about if name.startswith(start)
        }
        return {UUID(rest): about for rest, about in ours.items() if _is_hex(rest)}

    def origins(self) -> dict[UUID, Origin | None]:
        """Return root id → origin of its collection; None if it records none."""
        return {root_id: origin_in(about) for root_id, about in self.descriptions().items()}

    def origin(self, root_id: UUID) -> Origin | None:
        """Return the origin of a root's collection; None if there is none, or it records none."""
        about = self._client.call(Collections.description, self._name(root_id))
        return origin_in(about) if about else None

    def set_origin(self, root_id: UUID, origin: Origin) -> None:
        """Record the origin in a root's collection, if there is one."""
        self._client.call(Collections.describe, self._name(root_id), origin._asdict())

    def free_memory(self) -> None:
        """Free what an embedded Chroma has read if it is much: 1.7 kB a vector of the
        collections that were written or searched since it was opened. The next call opens it
        again."""
        self._client.free_memory()

    def close(self) -> None:
        """Close Chroma's files or connections."""
        self._client.close()

    def _name(self, root_id: UUID) -> str:
        return f"{self._prefix}_{root_id.hex}"


def _is_hex(text: str) -> bool:
    return len(text) == 32 and all(character in "0123456789abcdef" for character in text)


_store: VectorStore | None = None
_lock: chroma.FolderLock | None = None
_opening = threading.RLock()


def get_store() -> VectorStore:
    """Return the store of this process: the server at CHROMA_URL, else the data folder's.

    Raises Unavailable with the code CHROMA_UNAVAILABLE if another process uses the folder or no
    server answers, and CHROMA_BROKEN if the files in the folder are broken.
    """
    global _store
    with _opening:
        if _store is None:
            claim_store()
            try:
                _store = _open()
            except Unavailable:
                check_due.set()
                raise
        return _store


def is_open() -> bool:
    """Whether this process has opened the store. Opening it takes a second."""
    return _store is not None


def claim_store() -> None:
    """Lock the folder of an embedded store without opening it, which takes a second.

    Called at start-up, which must fail if another process uses the folder: raises Unavailable, not
    retryable, with a message that names CHROMA_URL.
    """
    global _lock
    with _opening:
        if _lock is not None and not _lock.holds():
            _lock.close()
            _lock = None
        if _lock is None and not config().chroma_url:
            _lock = chroma.FolderLock(_folder())


def _folder() -> Path:
    return config().data_dir.absolute() / "chroma"


def _open() -> VectorStore:
    url, prefix = config().chroma_url, config().ingest_collection
    client = Collections(chroma.open_server(url)) if url else Embedded(_folder())
    return VectorStore(client, prefix)


def set_store_aside() -> Path | None:
    """Move a broken embedded store away; the next `get_store` opens a new one.

    Return the folder that has its files now; None if there were none. Raises Unavailable if another
    process uses the store, or Chroma is a server.
    """
    global _store
    if config().chroma_url:
        raise chroma.unavailable("The files of a Chroma server are its own", retryable=False)
    with _opening:
        if _store is not None:
            _store.close()
            _store = None
        claim_store()
        return aside.set_store_aside(_folder())


def reset_store() -> None:
    """Close the store and unlock its folder. The next `get_store` reads the settings again."""
    global _store, _lock
    with _opening:
        if _store is not None:
            _store.close()
        if _lock is not None:
            _lock.close()
        _store = _lock = None
