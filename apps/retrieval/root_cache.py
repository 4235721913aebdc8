"""The copies of roots that are mapped, up to CODEINFO_RETRIEVAL_MEMORY_MB.

The live chunks and the vectors of one generation of a root do not change, so a copy returns what
the stores would (`apps.index.mapped`). A run writes the copy of what it publishes
(`apps.ingest.runs.copying`), and the first search of a process maps it. Where there is none, it is
written in the background, when the root is published (`follow_changes`) or after the first search
of a generation; until then searches read the stores. The least recently used
root is evicted first; a root that was searched within IDLE_SECONDS is not evicted.

Each search process (`search_processes`) has a cache of its own, which writes no copies.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from channels.db import database_sync_to_async
from django.conf import settings
from django.db import DatabaseError

from apps.core.concurrency.hub import hub
from apps.core.config import config
from apps.core.errors import Unavailable
from apps.index import changes, opened, queries
from apps.index.installation import installation_id
from apps.index.lexical import get_lexical
from apps.index.mapped.copies import fits, get_copies, memory_of
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root
from apps.index.queries import live_file_ids
from apps.index.vectors.store import get_store
from apps.retrieval.search_processes import search_processes

log = logging.getLogger("codeinfo.retrieval")

# A root that was not searched for this time may be evicted.
IDLE_SECONDS = 600.0
# Delay before a root that could not be loaded is tried again.
RETRY_SECONDS = 10.0
# How long a search waits for another one that maps the root.
OPEN_SECONDS = 10.0


@dataclass
class CacheEntry:
    """A mapped root."""

    root: Root
    mapped: MappedRoot
    bytes: int  # `memory_of`
    used_at: float  # when it was last searched, by the clock of the cache


@dataclass(frozen=True)
class LoadRequest:
    """A root whose copy is to be written."""

    root: Root  # as it was when the copy was requested
    dimension: int  # of its vectors
    used_at: float  # when it was last searched, by the clock of the cache
    load: Callable[[], MappedRoot | None]

    @property
    def bytes(self) -> int:
        return memory_of(self.root.embedded, self.dimension)


def load(root: Root, dimension: int, live: frozenset[str], installation: str) -> MappedRoot | None:
    """Map the copy of a root, and write it first if there is none. None if the words or the vectors
    of some chunks are missing.

    `live` are documents of SourceFiles. Raises Unavailable.
    """
    copies = get_copies()
    return copies.open(root, dimension) or copies.write(
        root, live, get_lexical(), get_store(), installation
    )


class RootCache:
    """Thread-safe. A background thread writes copies and ends when no request is left."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, writes: bool = True) -> None:
        """writes: False in a search process, where `get` raises Unavailable NOT_MAPPED instead"""
        self._clock, self._writes = clock, writes
        self._changed = threading.Condition()
        self._entries: dict[UUID, CacheEntry] = {}
        self._requests: deque[LoadRequest] = deque()
        self._tried: dict[UUID, tuple[int, float]] = {}  # generation and time of the last request
        self._worker: threading.Thread | None = None
        self._opening: set[UUID] = set()  # roots that a thread maps now

    def get(self, root: Root, dimension: int, *, request: bool = True) -> MappedRoot | None:
        """The root if it is mapped at this generation and dimension, or can be. Otherwise request
        its copy, if `request`."""
        with self._changed:
            # The stores take longer than another thread that maps it.
            self._changed.wait_for(lambda: root.id not in self._opening, OPEN_SECONDS)
            entry = self._entries.get(root.id)
            now = self._clock()
            if entry and entry.mapped.is_of(root.generation, dimension):
                entry.used_at = now
                return entry.mapped
            accepts = self._accepts(root, dimension)
            if accepts:
                self._opening.add(root.id)
        if accepts:
            try:
                if mapped := self._open(root, dimension, now):
                    return mapped
            finally:
                with self._changed:
                    self._opening.discard(root.id)
                    self._changed.notify_all()
        if not request:
            return None
        if not self._writes:
            raise Unavailable(f"{root.path} is not mapped", code="NOT_MAPPED")
        if accepts:
            self._request(root, dimension, now)
        return None

    def holds(self, roots: Iterable[Root], dimension: int) -> bool:
        """Whether all these roots are mapped at their generation. Marks them as used."""
        with self._changed:
            now = self._clock()
            for root in roots:
                entry = self._entries.get(root.id)
                if entry is None or not entry.mapped.is_of(root.generation, dimension):
                    return False
                entry.used_at = now
        return True

    def mapped_roots(self) -> list[tuple[Root, int]]:
        """The roots that are mapped, with the dimension of their vectors."""
        with self._changed:
            return [(entry.root, entry.mapped.dimension) for entry in self._entries.values()]

    def refresh(self, roots: Iterable[Root], dimension: int) -> None:
        """Load the published roots that are not cached, or cached at an earlier generation."""
        for root in roots:
            with self._changed:
                if self._has(root, dimension) or not self._accepts(root, dimension):
                    continue
                entry = self._entries.get(root.id)
                used_at = entry.used_at if entry else self._clock() - IDLE_SECONDS
            self._request(root, dimension, used_at)

    def forget_others(self, roots: Iterable[Root]) -> None:
        """Unmap all roots but these, so that the space of deleted copies is free."""
        self.keep_only(frozenset(root.id for root in roots))

    def keep_only(self, ids: frozenset[UUID]) -> None:
        """Unmap all roots but those with these ids."""
        with self._changed:
            for root_id in self._entries.keys() - ids:
                del self._entries[root_id]

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is being loaded. Return False on a timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_working(), seconds)

    def _is_working(self) -> bool:
        return self._worker is not None and self._worker.is_alive()

    def _accepts(self, root: Root, dimension: int) -> bool:
        """Return True, and record the attempt, if a root should be loaded now."""
        if not fits(root.embedded, dimension) or not self._is_due(root):
            return False
        self._tried[root.id] = root.generation, self._clock()
        return True

    def _is_due(self, root: Root) -> bool:
        """Return False for an older generation than the cached one, and after a recent attempt."""
        entry = self._entries.get(root.id)
        if entry and entry.mapped.generation > root.generation:
            return False
        generation, at = self._tried.get(root.id, (0, 0.0))
        return root.generation > generation or (
            root.generation == generation and self._clock() - at > RETRY_SECONDS
        )

    def _open(self, root: Root, dimension: int, used_at: float) -> MappedRoot | None:
        """Map the copy of a root if there is one, and room for it."""
        request = LoadRequest(root, dimension, used_at, lambda: None)
        mapped = get_copies().open(root, dimension)
        with self._changed:
            if mapped is None or not self._make_room(request, mapped):
                return None
            self._entries[root.id] = CacheEntry(root, mapped, request.bytes, used_at)
        return mapped

    def _request(self, root: Root, dimension: int, used_at: float) -> None:
        loading = partial(load, root, dimension, live_file_ids(root), installation_id())
        with self._changed:
            self._requests.append(LoadRequest(root, dimension, used_at, loading))
            if not self._is_working():
                self._worker = threading.Thread(target=self._work, name="search-load", daemon=True)
                self._worker.start()

    def _work(self) -> None:
        while request := self._next():
            try:
                mapped = request.load()
            except Unavailable as error:
                log.warning("root not cached", extra={"context": {"reason": error.message}})
                continue
            with self._changed:
                if mapped and self._make_room(request, mapped):
                    before = self._entries.get(request.root.id)
                    used_at = max(request.used_at, before.used_at if before else 0)
                    entry = CacheEntry(request.root, mapped, request.bytes, used_at)
                    self._entries[request.root.id] = entry
                search_processes.tell(map_roots, [(request.root, request.dimension)])

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
        return bool(entry and entry.mapped.is_of(root.generation, dimension))

    def _make_room(self, request: LoadRequest, mapped: MappedRoot | None = None) -> bool:
        """Evict idle roots if necessary. Return True if the root fits.

        mapped: the root, if it is loaded; otherwise the memory that it needs is an estimate
        """
        # The entry that the request replaces is freed after the load.
        others = {i: entry for i, entry in self._entries.items() if i != request.root.id}
        limit = config().retrieval_memory_mb << 20
        idle_since = self._clock() - IDLE_SECONDS
        for root_id, entry in sorted(others.items(), key=lambda item: item[1].used_at):
            if _bytes_with(others.values(), request, mapped) <= limit:
                break
            if entry.used_at > idle_since:
                return False
            del others[root_id], self._entries[root_id]
        return _bytes_with(others.values(), request, mapped) <= limit


def _bytes_with(
    entries: Iterable[CacheEntry], request: LoadRequest, mapped: MappedRoot | None
) -> int:
    """The memory of entries and of a request. Parts that several roots share are counted once; a
    root that is not loaded counts as sharing all it can with the largest root of its store."""
    total = request.bytes
    parts = {(part.part.store, part.part.name) for part in mapped.parts} if mapped else set()
    largest = 0
    for entry in entries:
        total += entry.bytes
        for part in entry.mapped.parts:
            if (key := (part.part.store, part.part.name)) in parts:
                total -= memory_of(len(part), entry.mapped.dimension)
            parts.add(key)
        if entry.mapped.parts and entry.mapped.parts[0].part.store == request.root.store:
            largest = max(largest, entry.bytes)
    return total if mapped else total - min(largest, request.bytes)


root_cache = RootCache(writes=settings.WRITES_COPIES)
opened.use(lambda root, dimension: root_cache.get(root, dimension))


def map_roots(roots: Sequence[tuple[Root, int]]) -> None:
    """Map the copies that there are of these roots, with the dimension of their vectors."""
    for root, dimension in roots:
        root_cache.get(root, dimension, request=False)


def _keep_only(ids: frozenset[UUID]) -> None:
    root_cache.keep_only(ids)


async def follow_changes() -> None:
    """Load each root as soon as it is published. Runs until it is cancelled."""
    with hub.subscribe(changes.ROOTS) as notices:
        async for _ in notices.batches():
            try:
                await database_sync_to_async(_refresh, thread_sensitive=False)()
            except DatabaseError:
                continue  # the next search loads it


def _refresh() -> None:
    roots = queries.published_roots()
    root_cache.forget_others(roots)
    search_processes.tell(_keep_only, frozenset(root.id for root in roots))
    get_copies().sweep(Root.objects.values_list("store", "id"))
    lock = queries.index_lock()
    if lock is not None:
        root_cache.refresh([root for root in roots if root.model == lock.model], lock.dimension)
