"""Operations ("verbs") on the collections of a Chroma.

Arguments and results are arrays, strings, numbers and lists, as they go through a pipe if Chroma is
embedded. A collection that does not exist is not an error: it is empty.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from apps.core.errors import Unavailable
from apps.core.ingest_throttle import WRITE_SLICE
from apps.core.telemetry import span, tell
from apps.embedding.types import Vectors
from apps.index.vectors import chroma

P = ParamSpec("P")
Result = TypeVar("Result")
Facts = Mapping[str, Any]

SPACE = "l2"
# HNSW parameters (Malkov and Yashunin, 2016). ef_search 200 instead of Chroma's 100 raises recall
# at 10 among 20,000 from .97 to .99.
INDEX = {"space": SPACE, "ef_search": 200}
# Rows that are not synced slow every call, and each sync writes the ids of all rows again. So a
# collection that begins with a whole write of an ingest, and will be large, is synced less often.
SYNC_SMALL, SYNC_LARGE = 400, WRITE_SLICE
NAMES_PAGE = 500
# Collections queried at the same time. Chroma releases the GIL while it searches.
QUERY_THREADS = 4


class Collections:
    """The verbs on a chromadb client. Raises Unavailable CHROMA_UNAVAILABLE or CHROMA_CRASHED."""

    def __init__(self, client: Any, folder: Path | None = None) -> None:
        """`folder` has the files of an embedded Chroma; None for a server."""
        self._client = client
        self._folder = folder
        self._lock = threading.Lock()
        self._handles: dict[str, Any] = {}
        self._threads = ThreadPoolExecutor(QUERY_THREADS, thread_name_prefix="chroma-ask")

    @span("chroma")
    def call(
        self,
        verb: Callable[Concatenate["Collections", P], Result],
        *args: P.args,
        **options: P.kwargs,
    ) -> Result:
        """Call a verb in this process; `process.Embedded.call` does so in a child."""
        tell(verb=verb.__name__)
        return verb(self, *args, **options)

    def each(
        self, verb: Callable[..., Result], calls: Sequence[tuple[Any, ...]]
    ) -> list[tuple[bool, Result | Unavailable]]:
        """Call a verb that reads for several argument tuples, in parallel.

        Return (True, result) or (False, error) for each. Raises Unavailable CHROMA_CRASHED if any
        call crashes Chroma, as the other results cannot be relied on then.
        """

        def one(call: tuple[Any, ...]) -> tuple[bool, Result | Unavailable]:
            try:
                return True, verb(self, *call)
            except Unavailable as error:
                if error.code == chroma.CRASHED:
                    raise
                return False, error

        if len(calls) < 2:
            return [one(call) for call in calls]
        return list(self._threads.map(one, calls))

    def add(self, name: str, about: Facts, ids: Sequence[str], vectors: Vectors) -> None:
        """Add the rows whose ids are new. Create the collection if it is missing.

        about: metadata of a created collection
        vectors: float32 (len(ids), dimension)
        """
        self._in(
            name,
            lambda it: it.add(ids=ids, embeddings=vectors),
            create=lambda: self._create(name, about, len(ids)),
        )

    def nearest(self, name: str, vector: Vectors, n: int) -> list[tuple[str, float]]:
        """Return id and squared L2 distance of the n nearest, nearest first."""
        result = self._in(name, lambda it: it.query([vector], n_results=n, include=["distances"]))
        return list(zip(result["ids"][0], result["distances"][0], strict=True)) if result else []

    def distances(self, name: str, vector: Vectors, ids: Sequence[str]) -> dict[str, float]:
        """Return id → squared L2 distance, for the rows that exist."""
        # A Chroma query restricted to ids takes ten times as long.
        existing, vectors = self.vectors(name, ids)
        if not existing:
            return {}
        return dict(zip(existing, squared_distances(vectors, vector).tolist(), strict=True))

    def vectors(self, name: str, ids: Sequence[str]) -> tuple[list[str], Vectors]:
        """Return the ids that exist, in any order, and their vectors, float32 (n, dimension)."""
        result = self._in(name, lambda it: it.get(ids=ids, include=["embeddings"]))
        if not result or not result["ids"]:
            return [], np.zeros((0, 0), np.float32)
        return list(result["ids"]), np.asarray(result["embeddings"], np.float32)

    def get(self, name: str, ids: Sequence[str]) -> list[tuple[str, Facts | None]]:
        """Return id and metadata of the rows that exist, in any order. Only rows of earlier
        versions have metadata."""
        result = self._in(name, lambda it: it.get(ids=ids, include=["metadatas"]))
        return list(zip(result["ids"], result["metadatas"], strict=True)) if result else []

    def ids(self, name: str, limit: int, offset: int = 0) -> list[str]:
        """Return a page of the ids of all rows."""
        result = self._in(name, lambda it: it.get(limit=limit, offset=offset, include=[]))
        return list(result["ids"]) if result else []

    def delete(self, name: str, ids: Sequence[str]) -> None:
        """Delete rows. Unknown ids are ignored."""
        self._in(name, lambda it: it.delete(ids=ids))

    def count(self, name: str) -> int:
        """Return the number of rows."""
        return self._in(name, lambda it: int(it.count())) or 0

    def names(self) -> list[str]:
        """Return the names of all collections."""
        return list(self.descriptions())

    def descriptions(self) -> dict[str, dict[str, Any]]:
        """Return collection name → metadata of the collection."""
        with chroma.chroma_errors():
            collections = pages(self._client.list_collections, NAMES_PAGE)
            return {each.name: dict(each.metadata or {}) for each in collections}

    def description(self, name: str) -> dict[str, Any] | None:
        """Return the metadata of a collection, read from Chroma and not from a cached handle; None
        if there is no collection."""
        try:
            with chroma.chroma_errors():
                return dict(self._find(name).metadata or {})
        except Unavailable as error:
            if chroma.is_missing(error):
                return None
            raise

    def describe(self, name: str, facts: Facts) -> None:
        """Update the metadata of a collection, if there is one."""
        current = self.description(name)
        if current is not None:
            self._in(name, lambda it: it.modify(metadata={**current, **facts}))

    def drop(self, name: str) -> None:
        """Delete a collection."""
        with self._lock:
            self._handles.pop(name, None)
        if self._folder:
            chroma.note_dropped(self._folder, name)
        try:
            with chroma.chroma_errors():
                self._client.delete_collection(name)
        except Unavailable as error:
            if not chroma.is_missing(error):
                raise

    def restart(self) -> None:
        """Do nothing: a server is not restarted."""

    def free_memory(self) -> None:
        """Do nothing: the memory of a server is its own."""

    def diagnose(self, names: Sequence[str], error: Unavailable) -> None:
        """Do nothing: the files of a server are not accessible."""

    def set_aside(self, names: Sequence[str]) -> Path | None:
        """Return None: the files of a server are not accessible."""
        return None

    def sweep(self) -> list[str]:
        """Remove index folders of dropped collections (embedded only). Return their names."""
        return chroma.sweep(self._folder) if self._folder else []

    @contextmanager
    def paused(self) -> Iterator[Path | None]:
        """Yield None: the files of a server are not accessible."""
        yield None

    def close(self) -> None:
        """Close Chroma's files or connections."""
        self._threads.shutdown()
        self._client.close()

    def _in(
        self,
        name: str,
        work: Callable[[Any], Result],
        create: Callable[[], Any] | None = None,
    ) -> Result | None:
        """Call `work` with a collection; return None if it is missing and `create` is None.

        Handles are cached. If the collection of a handle is missing, because another process may
        have dropped it, it is looked up or created once more.
        """
        for last in (False, True):
            try:
                with chroma.chroma_errors():
                    return work(self._collection(name, create))
            except Unavailable as error:
                if not chroma.is_missing(error):
                    raise
                with self._lock:
                    cached = self._handles.pop(name, None)
                if last or not (cached or create):
                    return None
        return None

    def _collection(self, name: str, create: Callable[[], Any] | None) -> Any:
        with self._lock:
            if name not in self._handles:
                self._handles[name] = create() if create else self._find(name)
            return self._handles[name]

    def _find(self, name: str) -> Any:
        return self._client.get_collection(name, embedding_function=None)

    def _create(self, name: str, about: Facts, first_rows: int) -> Any:
        sync = SYNC_LARGE if first_rows >= WRITE_SLICE else SYNC_SMALL
        return self._client.get_or_create_collection(
            name,
            embedding_function=None,
            configuration={"hnsw": INDEX | {"sync_threshold": sync}},
            metadata=dict(about),
        )


def squared_distances(vectors: Vectors, vector: Vectors) -> Vectors:
    """Return the squared L2 distance of each row to `vector`.

    vectors: float32 (n, dimension); vector: float32 (dimension,); result: float32 (n,)
    """
    differences = vectors - vector
    distances: Vectors = np.einsum("ij,ij->i", differences, differences)
    return distances


class _Page(Protocol):
    def __call__(self, limit: int, offset: int) -> Sequence[Any]: ...


def pages(read: _Page, size: int) -> Iterator[Any]:
    """Yield all items of a paged listing, `size` a page."""
    offset = 0
    while page := read(limit=size, offset=offset):
        yield from page
        offset += len(page)
