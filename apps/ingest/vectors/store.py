"""The vectors and texts of chunks, in Chroma: one collection per root.

A chunk is one Chroma record: its id, its vector, and metadata of three keys. `runId` and
`sourceFile` are there to delete by; `record` is everything else, the text too, as one JSON string.
Chroma 1.5 makes a row and two index entries of every key, and a trigram index of every document
that nobody asks for: with a document and a key for each fact 800 chunks a second went in where this
way 2,200 do, and a query took twice as long.

Chroma holds Python's global lock while it writes, so no other thread runs. Writes are therefore cut
into slices, to let questions and streams through.
"""

import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import UUID

import numpy as np

from apps.ingest.types import StoredMatch, VectorRecord, Vectors
from apps.ingest.vectors import chroma
from codeinfo.conf import knobs
from codeinfo.errors import Unavailable

Result = TypeVar("Result")

SPACE = "l2"
# A wider search than Chroma's 100 finds .99 of the true ten best among 20,000, not .97. What waits
# to be written to its files makes every call slower, so it writes at 400 rows, not at 1,000.
INDEX = {"space": SPACE, "ef_search": 200, "sync_threshold": 400}
# Rows in one call: 60 ms of work; 200 would be 5 % faster in all, and hold others up twice as long.
WRITE_SLICE = 100
READ_SLICE = 5_000
# Records with their texts, 1 MB or so at once.
RECORDS_SLICE = 500
_FILTERED = ("runId", "sourceFile")


class VectorStore:
    """All verbs on vectors. Safe from any thread.

    Errors: Unavailable(CHROMA_UNAVAILABLE) where Chroma is away or fails. A root without a
    collection is no error: it holds nothing.
    """

    def __init__(self, client: Any, prefix: str, close: Callable[[], None], folder: Path | None):
        """`folder` is where an embedded Chroma keeps its files; None for a server."""
        self._client = client
        self._prefix = prefix
        self._close = close
        self._folder = folder
        self._slice = min(client.get_max_batch_size(), WRITE_SLICE)
        self._lock = threading.Lock()
        self._known: dict[UUID, Any] = {}

    def add(
        self, root_id: UUID, model: str, records: Sequence[VectorRecord], vectors: Vectors
    ) -> list[str]:
        """Keep records under their vectors, of any length, shape (len(records), dimension).

        Answers the ids that were refused, because their vector is zero or not finite. An id that
        is there already stays as it is.
        """
        units, good = unit_rows(vectors)
        kept = [record for record, fine in zip(records, good, strict=True) if fine]
        units = units[good]
        create = partial(self._create, root_id, model, units.shape[1])
        for start in range(0, len(kept), self._slice):
            part = slice(start, start + self._slice)
            work = partial(_add, records=kept[part], vectors=units[part])
            self._in_collection(root_id, work, create)
        return [record.id for record, fine in zip(records, good, strict=True) if not fine]

    def query(self, root_id: UUID, vector: Vectors, n: int) -> list[StoredMatch]:
        """The n nearest, nearest first; distances are 2 - 2·cos. None to a vector of zero."""
        units, good = unit_rows(vector.reshape(1, -1))
        if n < 1 or not good[0]:
            return []
        ask = partial(_query, vector=units[0], n=n)
        return self._in_collection(root_id, ask) or []

    def nearest(self, root_id: UUID, vector: Vectors, n: int) -> list[tuple[str, float]]:
        """Ids and distances of the n nearest, nearest first: a third of the time of `query`."""
        units, good = unit_rows(vector.reshape(1, -1))
        if n < 1 or not good[0]:
            return []
        ask = partial(_nearest, vector=units[0], n=n)
        return self._in_collection(root_id, ask) or []

    def distances(self, root_id: UUID, vector: Vectors, ids: Sequence[str]) -> dict[str, float]:
        """The exact distance of each of these records; ids that are not there are left out.

        Empty for a vector of zero, which has none.
        """
        units, good = unit_rows(vector.reshape(1, -1))
        if not ids or not good[0]:
            return {}
        ask = partial(_distances, vector=units[0], ids=ids)
        return self._in_collection(root_id, ask) or {}

    def get(self, root_id: UUID, ids: Sequence[str]) -> dict[str, StoredMatch]:
        """Text and metadata of these records, without a distance; unknown ids are left out."""
        return self._in_collection(root_id, partial(_get, ids=ids)) or {} if ids else {}

    def records(self, root_id: UUID) -> Iterator[StoredMatch]:
        """Every record that is there at the call and still there when its turn comes."""
        names = sorted(self.ids(root_id))
        for start in range(0, len(names), RECORDS_SLICE):
            yield from self.get(root_id, names[start : start + RECORDS_SLICE]).values()

    def delete_run(self, root_id: UUID, run_id: UUID | str) -> int:
        """Delete what a run wrote; how many there were."""
        return self._delete(root_id, {"runId": str(run_id)})

    def delete_files(self, root_id: UUID, source_file_ids: Sequence[UUID | str]) -> int:
        """Delete the chunks of some files; how many there were."""
        names = [str(each) for each in source_file_ids]
        groups = [names[start : start + 1_000] for start in range(0, len(names), 1_000)]
        return sum(self._delete(root_id, {"sourceFile": {"$in": group}}) for group in groups)

    def ids(self, root_id: UUID) -> set[str]:
        return self._in_collection(root_id, lambda found: set(_all_ids(found))) or set()

    def count(self, root_id: UUID) -> int:
        return self._in_collection(root_id, lambda found: int(found.count())) or 0

    def drop(self, root_id: UUID) -> None:
        """Delete all of a root, and its index files."""
        with self._lock:
            self._known.pop(root_id, None)
        try:
            with chroma.chroma_errors():
                self._client.delete_collection(self._name(root_id))
        except Unavailable as error:
            if not chroma.is_missing(error):
                raise
        self.sweep()

    def sweep(self) -> list[str]:
        """Remove index files that belong to nothing (embedded only); also for the start."""
        return chroma.sweep(self._folder) if self._folder else []

    def collections(self) -> set[UUID]:
        """The roots that have a collection."""
        with chroma.chroma_errors():
            names = [found.name for found in _pages(self._client.list_collections, 500)]
        start = f"{self._prefix}_"
        ours = (name.removeprefix(start) for name in names if name.startswith(start))
        return {UUID(rest) for rest in ours if _is_hex(rest)}

    def close(self) -> None:
        """Let go of Chroma's files or connections."""
        self._close()

    def _name(self, root_id: UUID) -> str:
        return f"{self._prefix}_{root_id.hex}"

    def _delete(self, root_id: UUID, where: Mapping[str, Any]) -> int:
        return self._in_collection(root_id, partial(_delete, where=where, size=self._slice)) or 0

    def _in_collection(
        self,
        root_id: UUID,
        work: Callable[[Any], Result],
        create: Callable[[], Any] | None = None,
    ) -> Result | None:
        """Do work on a root's collection; None where there is none and none is to be made.

        A handle is kept between calls. Where the collection behind it is gone, since another
        process may have dropped it, it is looked up, or made, once more.
        """
        for last in (False, True):
            try:
                with chroma.chroma_errors():
                    return work(self._collection(root_id, create))
            except Unavailable as error:
                if not chroma.is_missing(error):
                    raise
                with self._lock:
                    known = self._known.pop(root_id, None)
                if last or not (known or create):
                    return None
        return None

    def _collection(self, root_id: UUID, create: Callable[[], Any] | None) -> Any:
        with self._lock:
            if root_id not in self._known:
                self._known[root_id] = create() if create else self._find(root_id)
            return self._known[root_id]

    def _find(self, root_id: UUID) -> Any:
        return self._client.get_collection(self._name(root_id), embedding_function=None)

    def _create(self, root_id: UUID, model: str, dimension: int) -> Any:
        return self._client.get_or_create_collection(
            self._name(root_id),
            embedding_function=None,
            configuration={"hnsw": INDEX},
            metadata={
                "embedder": model.partition(":")[0] if ":" in model else "builtin",
                "model": model,
                "dimension": dimension,
                "space": SPACE,
                "root": str(root_id),
            },
        )


def unit_rows(vectors: Vectors) -> tuple[Vectors, Any]:
    """The rows at unit length, and which of them could be: zero and non-finite ones cannot."""
    # float64: the squares of large float32 numbers would not fit.
    wide = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    good = np.isfinite(lengths) & (lengths > 0)
    units = (wide / np.where(good, lengths, 1)[:, None]).astype(np.float32)
    return units, good


def _add(collection: Any, *, records: Sequence[VectorRecord], vectors: Vectors) -> None:
    collection.add(
        ids=[record.id for record in records],
        embeddings=vectors,
        metadatas=[_packed(record) for record in records],
    )


def _packed(record: VectorRecord) -> dict[str, Any]:
    filtered = {key: record.metadata[key] for key in _FILTERED if key in record.metadata}
    return filtered | {"record": json.dumps([record.text, record.metadata], ensure_ascii=False)}


def _query(collection: Any, *, vector: Vectors, n: int) -> list[StoredMatch]:
    found = collection.query(
        query_embeddings=[vector], n_results=n, include=["metadatas", "distances"]
    )
    rows = zip(found["ids"][0], found["metadatas"][0], found["distances"][0], strict=True)
    return [_match(*row) for row in rows]


def _nearest(collection: Any, *, vector: Vectors, n: int) -> list[tuple[str, float]]:
    found = collection.query(query_embeddings=[vector], n_results=n, include=["distances"])
    return list(zip(found["ids"][0], found["distances"][0], strict=True))


def _distances(collection: Any, *, vector: Vectors, ids: Sequence[str]) -> dict[str, float]:
    # Chroma's own query among given ids takes ten times as long.
    found = collection.get(ids=list(ids), include=["embeddings"])
    between = np.asarray(found["embeddings"], np.float32).reshape(-1, len(vector)) - vector
    squares = np.einsum("ij,ij->i", between, between)
    return dict(zip(found["ids"], squares.tolist(), strict=True))


def _get(collection: Any, *, ids: Sequence[str]) -> dict[str, StoredMatch]:
    found = collection.get(ids=list(ids), include=["metadatas"])
    rows = zip(found["ids"], found["metadatas"], strict=True)
    return {vector_id: _match(vector_id, packed, None) for vector_id, packed in rows}


def _match(vector_id: str, packed: Mapping[str, Any], distance: float | None) -> StoredMatch:
    text, metadata = json.loads(packed["record"])
    finite = distance is not None and math.isfinite(distance)
    return StoredMatch(vector_id, text, metadata, distance if finite else None)


def _delete(collection: Any, *, where: Mapping[str, Any], size: int) -> int:
    deleted = 0
    # To ask anew for every slice took a third of the time.
    while ids := collection.get(where=where, limit=READ_SLICE, include=[])["ids"]:
        for start in range(0, len(ids), size):
            collection.delete(ids=ids[start : start + size])
        deleted += len(ids)
    return deleted


def _all_ids(collection: Any) -> Iterator[str]:
    return _pages(
        lambda limit, offset: collection.get(limit=limit, offset=offset, include=[])["ids"],
        READ_SLICE,
    )


class _Page(Protocol):
    def __call__(self, limit: int, offset: int) -> Sequence[Any]: ...


def _pages(read: _Page, size: int) -> Iterator[Any]:
    """All items of a listing that comes in pages."""
    offset = 0
    while page := read(limit=size, offset=offset):
        yield from page
        offset += len(page)


def _is_hex(text: str) -> bool:
    return len(text) == 32 and all(character in "0123456789abcdef" for character in text)


_store: VectorStore | None = None
_lock: chroma.FolderLock | None = None
_opening = threading.RLock()


def get_store() -> VectorStore:
    """The store of this process: the server at CHROMA_URL, else the one in the data folder.

    Raises Unavailable(CHROMA_UNAVAILABLE) where another process has that folder, or no server
    answers.
    """
    global _store
    with _opening:
        if _store is None:
            claim_store()
            _store = _open()
        return _store


def claim_store() -> None:
    """Take the embedded store's folder for this process, without the second that opening costs.

    For the start, which must fail where another process has it: raises Unavailable, not retryable,
    naming CHROMA_URL. Nothing to do where a server is used.
    """
    global _lock
    with _opening:
        if _lock is None and not knobs().chroma_url:
            _lock = chroma.FolderLock(_folder())


def _folder() -> Path:
    return knobs().data_dir.absolute() / "chroma"


def _open() -> VectorStore:
    url, prefix = knobs().chroma_url, knobs().ingest_collection
    client, close = chroma.open_server(url) if url else chroma.open_embedded(_folder())
    with chroma.chroma_errors():
        return VectorStore(client, prefix, close, None if url else _folder())


def reset_store() -> None:
    """Close the store and let go of its folder; the next `get_store` goes by the knobs of then."""
    global _store, _lock
    with _opening:
        if _store is not None:
            _store.close()
        if _lock is not None:
            _lock.release()
        _store = _lock = None
