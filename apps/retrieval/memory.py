"""Which roots are held in memory: those that are searched, up to CODEINFO_RETRIEVAL_MEMORY_MB.

A root is loaded when it is published (`follow`), else behind the first search of a generation; the
stores answer as long as it is not there. What has been asked for lately is not given up for
another, or many roots would keep turning each other out; what nobody has asked for yet goes first.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from channels.db import database_sync_to_async
from django.db import DatabaseError

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.hub import hub
from apps.index import changes, queries
from apps.index.lexical import get_lexical
from apps.index.models import Root
from apps.index.queries import live_file_ids
from apps.index.vectors.store import get_store
from apps.retrieval.held import Held, load, size

log = logging.getLogger("codeinfo.retrieval")

# What was not asked for so long makes room for others.
IDLE_SECONDS = 600.0
# What could not be held is not tried again at once.
PAUSE_SECONDS = 10.0


@dataclass
class _Shelf:
    held: Held
    bytes: int
    used_at: float


@dataclass(frozen=True)
class _Wish:
    """A root to load at a generation, with vectors of a length, when it was asked for, and how to
    load it where something was held before."""

    root: Root
    dimension: int
    asked_at: float
    load: Callable[[Held | None], Held | None]

    @property
    def bytes(self) -> int:
        return size(self.root.embedded, self.dimension)


class Memory:
    """Safe from any thread; loading is done by one of its own, which ends when there is nothing
    left to load."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._shelves: dict[UUID, _Shelf] = {}
        self._wishes: deque[_Wish] = deque()
        self._tried: dict[UUID, tuple[int, float]] = {}  # generation, and when
        self._worker: threading.Thread | None = None

    def held(self, root: Root, dimension: int) -> Held | None:
        """A root at the generation at hand, if it is held with vectors of this dimension. If not it
        will be in a while, unless it does not fit."""
        with self._changed:
            shelf = self._shelves.get(root.id)
            now = self._clock()
            if shelf and shelf.held.is_of(root.generation, dimension):
                shelf.used_at = now
                return shelf.held
            if not self._begins(root, dimension):
                return None
        self._wish(root, dimension, now)
        return None

    def renew(self, roots: Iterable[Root], dimension: int) -> None:
        """Load those of some published roots that are not held as they are now, without anybody
        asking."""
        for root in roots:
            with self._changed:
                if self._has(root, dimension) or not self._begins(root, dimension):
                    continue
                shelf = self._shelves.get(root.id)
                asked_at = shelf.used_at if shelf else self._clock() - IDLE_SECONDS
            self._wish(root, dimension, asked_at)

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is being loaded; whether that came to be."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_working(), seconds)

    def _is_working(self) -> bool:
        return self._worker is not None and self._worker.is_alive()

    def _begins(self, root: Root, dimension: int) -> bool:
        """Whether to try now to hold a root, which may fit."""
        allowed = size(root.embedded, dimension) <= config().retrieval_memory_mb << 20
        if not allowed or not self._is_wanted(root):
            return False
        self._tried[root.id] = root.generation, self._clock()
        return True

    def _is_wanted(self, root: Root) -> bool:
        """Not where a search that began before the last publishing asks for what was then, nor
        where this was tried just now."""
        shelf = self._shelves.get(root.id)
        if shelf and shelf.held.generation > root.generation:
            return False
        generation, at = self._tried.get(root.id, (0, 0.0))
        return root.generation > generation or (
            root.generation == generation and self._clock() - at > PAUSE_SECONDS
        )

    def _wish(self, root: Root, dimension: int, asked_at: float) -> None:
        try:
            loading = partial(load, root, live_file_ids(root), get_lexical(), get_store())
        except Unavailable:
            return  # the search itself will say so
        with self._changed:
            self._wishes.append(_Wish(root, dimension, asked_at, loading))
            if not self._is_working():
                self._worker = threading.Thread(target=self._work, name="search-load", daemon=True)
                self._worker.start()

    def _work(self) -> None:
        while wish := self._next():
            try:
                held = wish.load(self._before(wish))
            except Unavailable as error:
                log.warning("not held in memory", extra={"context": {"reason": error.message}})
                continue
            if held:
                with self._changed:
                    before = self._shelves.get(wish.root.id)
                    asked_at = max(wish.asked_at, before.used_at if before else 0)
                    self._shelves[wish.root.id] = _Shelf(held, wish.bytes, asked_at)

    def _before(self, wish: _Wish) -> Held | None:
        """What is held of an earlier generation, in vectors that compare."""
        with self._changed:
            shelf = self._shelves.get(wish.root.id)
        return shelf.held if shelf and shelf.held.dimension == wish.dimension else None

    def _next(self) -> _Wish | None:
        """The next root that there is room for; None ends the thread."""
        with self._changed:
            while self._wishes:
                wish = self._wishes.popleft()
                if not self._has(wish.root, wish.dimension) and self._make_room(wish):
                    return wish
            self._worker = None
            self._changed.notify_all()
            return None

    def _has(self, root: Root, dimension: int) -> bool:
        """Whether a root is held as it is; it may have come to be while it waited."""
        shelf = self._shelves.get(root.id)
        return bool(shelf and shelf.held.is_of(root.generation, dimension))

    def _make_room(self, wish: _Wish) -> bool:
        """Whether a root fits, once what nobody asks for has gone."""
        free = (config().retrieval_memory_mb << 20) - wish.bytes
        # What it replaces goes when it is there.
        others = {i: shelf for i, shelf in self._shelves.items() if i != wish.root.id}
        free -= sum(shelf.bytes for shelf in others.values())
        idle_since = self._clock() - IDLE_SECONDS
        for root_id, shelf in sorted(others.items(), key=lambda item: item[1].used_at):
            if free >= 0 or shelf.used_at > idle_since:
                break
            free += self._shelves.pop(root_id).bytes
        return free >= 0


memory = Memory()


async def follow() -> None:
    """Load what is published as soon as it is, for as long as this process serves."""
    with hub.subscribe(changes.ROOTS) as notices:
        async for _ in notices.batches():
            try:
                await database_sync_to_async(_renew, thread_sensitive=False)()
            except DatabaseError:
                continue  # the first search will load it


def _renew() -> None:
    lock = queries.index_lock()
    if lock is not None:
        roots = [root for root in queries.published_roots() if root.model == lock.model]
        memory.renew(roots, lock.dimension)
