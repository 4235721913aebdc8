"""A cache of the live chunks of roots in memory, up to CODEINFO_RETRIEVAL_MEMORY_MB.

The live chunks and the vectors of one generation of a root do not change, so the cache returns what
the stores would. A root is loaded when it is published (`follow_changes`), otherwise after the
first search of a generation; until then searches read the stores. The least recently used root is
evicted first; a root that was searched within IDLE_SECONDS is not evicted.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import numpy as np
from channels.db import database_sync_to_async
from django.db import DatabaseError

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.hub import hub
from apps.embedding.types import Vectors
from apps.index import changes, queries
from apps.index.lexical import Contents, LexicalStore, get_lexical
from apps.index.models import Root
from apps.index.queries import live_file_ids
from apps.index.vectors.store import VectorStore, get_store

log = logging.getLogger("codeinfo.retrieval")

# A root that was not searched for this time may be evicted.
IDLE_SECONDS = 600.0
# Delay before a root that could not be loaded is tried again.
RETRY_SECONDS = 10.0
# Id, names, location and words of a chunk: 1,145 on average over 41,683 chunks of 24 repositories.
BYTES_PER_CHUNK = 1_150


@dataclass(frozen=True)
class LoadedRoot:
    """The live chunks of one generation of a root."""

    generation: int
    contents: Contents  # n chunks
    units: Vectors  # float32 (n, dimension), unit length, in column order

    @property
    def dimension(self) -> int:
        return int(self.units.shape[1])

    def is_of(self, generation: int, dimension: int) -> bool:
        return (self.generation, self.dimension) == (generation, dimension)


def size_in_bytes(chunks: int, dimension: int) -> int:
    """Estimated memory of a LoadedRoot."""
    return chunks * (4 * dimension + BYTES_PER_CHUNK)


def load(
    root: Root,
    live: frozenset[str],
    lexical: LexicalStore,
    store: VectorStore,
    before: LoadedRoot | None = None,
) -> LoadedRoot | None:
    """Load the chunks of the live files. None if the words or the vectors of some are missing.

    `live` are ids of SourceFiles. `before` is an earlier generation with vectors of the same
    dimension. Raises Unavailable.
    """
    contents = lexical.contents(root.id, live)
    if contents is None or not contents.ids or len(contents.ids) != root.embedded:
        return None
    units = _units(root.id, contents.ids, store, before)
    return None if units is None else LoadedRoot(root.generation, contents, units)


def _units(
    root_id: UUID, ids: Sequence[str], store: VectorStore, before: LoadedRoot | None
) -> Vectors | None:
    """The vector of each id: float32 (n, dimension), unit length; None if the store lacks some.

    A vector never changes, so only new ids are read from the store.
    """
    row_of = {each: row for row, each in enumerate(before.contents.ids)} if before else {}
    new = [each for each in ids if each not in row_of]
    vectors = store.vectors(root_id, new) if new else None
    if before is None or len(new) == len(ids):
        # The product with a vector takes half the time in column order.
        return None if vectors is None else np.asfortranarray(vectors)
    if new and vectors is None:
        return None
    units = np.empty((len(ids), before.dimension), np.float32, order="F")
    rows = np.array([row_of.get(each, -1) for each in ids], np.intp)
    units[rows >= 0] = before.units[rows[rows >= 0]]
    if vectors is not None:
        units[rows < 0] = vectors
    return units


@dataclass
class CacheEntry:
    """A root in memory."""

    loaded: LoadedRoot
    bytes: int  # estimated
    used_at: float  # when it was last searched, by the clock of the cache


@dataclass(frozen=True)
class LoadRequest:
    """A root to load."""

    root: Root  # as it was when the load was requested
    dimension: int  # of its vectors
    used_at: float  # when it was last searched, by the clock of the cache
    load: Callable[[LoadedRoot | None], LoadedRoot | None]  # takes the cached generation

    @property
    def bytes(self) -> int:
        return size_in_bytes(self.root.embedded, self.dimension)


class RootCache:
    """Thread-safe. A background thread loads roots and ends when no request is left."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._entries: dict[UUID, CacheEntry] = {}
        self._requests: deque[LoadRequest] = deque()
        self._tried: dict[UUID, tuple[int, float]] = {}  # generation and time of the last request
        self._worker: threading.Thread | None = None

    def get(self, root: Root, dimension: int) -> LoadedRoot | None:
        """The cached root if it has this generation and dimension. On a miss, request it."""
        with self._changed:
            entry = self._entries.get(root.id)
            now = self._clock()
            if entry and entry.loaded.is_of(root.generation, dimension):
                entry.used_at = now
                return entry.loaded
            if not self._accepts(root, dimension):
                return None
        self._request(root, dimension, now)
        return None

    def refresh(self, roots: Iterable[Root], dimension: int) -> None:
        """Load the published roots that are not cached, or cached at an earlier generation."""
        for root in roots:
            with self._changed:
                if self._has(root, dimension) or not self._accepts(root, dimension):
                    continue
                entry = self._entries.get(root.id)
                used_at = entry.used_at if entry else self._clock() - IDLE_SECONDS
            self._request(root, dimension, used_at)

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is being loaded. Return False on a timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_working(), seconds)

    def _is_working(self) -> bool:
        return self._worker is not None and self._worker.is_alive()

    def _accepts(self, root: Root, dimension: int) -> bool:
        """Return True, and record the attempt, if a root should be loaded now."""
        fits = size_in_bytes(root.embedded, dimension) <= config().retrieval_memory_mb << 20
        if not fits or not self._is_due(root):
            return False
        self._tried[root.id] = root.generation, self._clock()
        return True

    def _is_due(self, root: Root) -> bool:
        """Return False for an older generation than the cached one, and after a recent attempt."""
        entry = self._entries.get(root.id)
        if entry and entry.loaded.generation > root.generation:
            return False
        generation, at = self._tried.get(root.id, (0, 0.0))
        return root.generation > generation or (
            root.generation == generation and self._clock() - at > RETRY_SECONDS
        )

    def _request(self, root: Root, dimension: int, used_at: float) -> None:
        try:
            loading = partial(load, root, live_file_ids(root), get_lexical(), get_store())
        except Unavailable:
            return  # the search itself reports it
        with self._changed:
            self._requests.append(LoadRequest(root, dimension, used_at, loading))
            if not self._is_working():
                self._worker = threading.Thread(target=self._work, name="search-load", daemon=True)
                self._worker.start()

    def _work(self) -> None:
        while request := self._next():
            try:
                loaded = request.load(self._before(request))
            except Unavailable as error:
                log.warning("root not cached", extra={"context": {"reason": error.message}})
                continue
            if loaded:
                with self._changed:
                    before = self._entries.get(request.root.id)
                    used_at = max(request.used_at, before.used_at if before else 0)
                    self._entries[request.root.id] = CacheEntry(loaded, request.bytes, used_at)

    def _before(self, request: LoadRequest) -> LoadedRoot | None:
        """The cached generation, if its vectors have the same dimension."""
        with self._changed:
            entry = self._entries.get(request.root.id)
        return entry.loaded if entry and entry.loaded.dimension == request.dimension else None

    def _next(self) -> LoadRequest | None:
        """The next request that there is room for; None ends the thread."""
        with self._changed:
            while self._requests:
                request = self._requests.popleft()
                if not self._has(request.root, request.dimension) and self._make_room(request):
                    return request
            self._worker = None
            self._changed.notify_all()
            return None

    def _has(self, root: Root, dimension: int) -> bool:
        entry = self._entries.get(root.id)
        return bool(entry and entry.loaded.is_of(root.generation, dimension))

    def _make_room(self, request: LoadRequest) -> bool:
        """Evict idle roots if necessary. Return True if the root fits."""
        free = (config().retrieval_memory_mb << 20) - request.bytes
        # The entry that the request replaces is freed after the load.
        others = {i: entry for i, entry in self._entries.items() if i != request.root.id}
        free -= sum(entry.bytes for entry in others.values())
        idle_since = self._clock() - IDLE_SECONDS
        for root_id, entry in sorted(others.items(), key=lambda item: item[1].used_at):
            if free >= 0 or entry.used_at > idle_since:
                break
            free += self._entries.pop(root_id).bytes
        return free >= 0


root_cache = RootCache()


async def follow_changes() -> None:
    """Load each root as soon as it is published. Runs until it is cancelled."""
    with hub.subscribe(changes.ROOTS) as notices:
        async for _ in notices.batches():
            try:
                await database_sync_to_async(_refresh, thread_sensitive=False)()
            except DatabaseError:
                continue  # the next search loads it


def _refresh() -> None:
    lock = queries.index_lock()
    if lock is not None:
        roots = [root for root in queries.published_roots() if root.model == lock.model]
        root_cache.refresh(roots, lock.dimension)
