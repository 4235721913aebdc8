"""Handles of Chroma's collections, which are found or created once."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from apps.core.concurrency.ingest_throttle import WRITE_SLICE
from apps.core.errors import Unavailable
from apps.index.vectors import chroma

Result = TypeVar("Result")
Facts = Mapping[str, Any]

SPACE = "l2"
# HNSW parameters (Malkov and Yashunin, 2016). Searches read the parts, so it is small: rows
# are added in .7 of the time with 8 neighbours instead of 16. Because the search is wider, it
# finds as many as with 16 (docs/benchmarks.md).
INDEX = {"space": SPACE, "max_neighbors": 8, "ef_construction": 64, "ef_search": 500}
# Rows that are not synced slow every call, and each sync writes the ids of all rows again. So a
# collection that begins with a whole write of an ingest, and will be large, is synced less often.
SYNC_SMALL, SYNC_LARGE = 400, WRITE_SLICE
NAMES_PAGE = 500


class Handles:
    """The collections of a chromadb client. Thread-safe."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._handles: dict[str, Any] = {}

    def call(
        self,
        name: str,
        work: Callable[[Any], Result],
        create: Callable[[], Any] | None = None,
    ) -> Result | None:
        """Call `work` with a collection; return None if it is missing and `create` is None.

        If the collection of a handle is missing, because another process may have dropped it, it is
        looked up or created once more. Raises Unavailable.
        """
        for last in (False, True):
            try:
                with chroma.chroma_errors():
                    return work(self._handle(name, create))
            except Unavailable as error:
                if not chroma.is_missing(error):
                    raise
                cached = self.forget(name)
                if last or not (cached or create):
                    return None
        return None

    def forget(self, name: str) -> bool:
        """Forget a handle. Return whether there was one."""
        with self._lock:
            return self._handles.pop(name, None) is not None

    def find(self, name: str) -> Any:
        """Return a new handle. Raises as Chroma does."""
        return self._client.get_collection(name, embedding_function=None)

    def create(self, name: str, about: Facts, first_rows: int) -> tuple[Any, bool]:
        """Return a handle, and whether this has created its collection.

        first_rows: number of rows that will be added first
        """
        try:
            with chroma.chroma_errors():
                return self.find(name), False
        except Unavailable as error:
            if not chroma.is_missing(error):
                raise
        sync = SYNC_LARGE if first_rows >= WRITE_SLICE else SYNC_SMALL
        created = self._client.get_or_create_collection(
            name,
            embedding_function=None,
            configuration={"hnsw": INDEX | {"sync_threshold": sync}},
            metadata=dict(about),
        )
        return created, True

    def each(self) -> Iterator[Any]:
        """Yield a new handle of each collection. Raises Unavailable."""
        with chroma.chroma_errors():
            yield from pages(self._client.list_collections, NAMES_PAGE)

    def _handle(self, name: str, create: Callable[[], Any] | None) -> Any:
        with self._lock:
            if name not in self._handles:
                self._handles[name] = create() if create else self.find(name)
            return self._handles[name]


class _Page(Protocol):
    def __call__(self, limit: int, offset: int) -> Sequence[Any]: ...


def pages(read: _Page, size: int) -> Iterator[Any]:
    """Yield all items of a paged listing, `size` a page."""
    offset = 0
    while page := read(limit=size, offset=offset):
        yield from page
        offset += len(page)
