"""Change notices (publish/subscribe) within a process.

A notice has a topic and a key, and no data: the subscriber reads the present state. So a slow
subscriber misses nothing, and several notices about one key cost one read. (The channel layer drops
messages after 100.)

`relays` send notices to other processes: from a worker to its server (apps/ingest/worker), and to
those that share the database (apps/site/relay.py).
"""

import asyncio
import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress

from apps.core.concurrency.tasks import call_in_loop


class Subscription:
    """The keys that changed since the last read, oldest first, without duplicates."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._keys: dict[str, None] = {}
        self._ready = asyncio.Event()

    def wake(self, key: str) -> None:
        """Called from any thread."""
        call_in_loop(self._loop, self._add, key)

    def _add(self, key: str) -> None:
        self._keys[key] = None
        self._ready.set()

    async def next_batch(self) -> list[str]:
        """Wait for a change. Return all keys that changed. Nothing is lost if it is cancelled."""
        await self._ready.wait()
        keys, self._keys = list(self._keys), {}
        self._ready.clear()
        return keys

    async def next_within(self, seconds: float) -> bool:
        """Wait for a change, for `seconds` at most: other processes may not notify. Return whether
        one came."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.next_batch()
                return True
        return False

    async def __aiter__(self) -> AsyncIterator[str]:
        while True:
            for key in await self.next_batch():
                yield key


class Hub:
    """The topics of this process and their subscriptions. Thread-safe."""

    def __init__(self) -> None:
        # Called with topic and key of each notice, to send it to other processes.
        self.relays: set[Callable[[str, str], None]] = set()
        self._lock = threading.Lock()
        self._topics: dict[str, set[Subscription]] = defaultdict(set)
        self._notices: Counter[str] = Counter()
        self._started = time.time_ns()

    def version(self, topic: str) -> str:
        """Return a value that changes with every notice. A page compares it when its socket opens,
        to detect notices before that."""
        return f"{self._started}-{self._notices[topic]}"

    def notify(self, topic: str, key: str = "") -> None:
        """Notify all subscribers of `topic` in all processes that `key` changed."""
        self.notify_here(topic, key)
        for relay in list(self.relays):
            relay(topic, key)

    def notify_here(self, topic: str, key: str = "") -> None:
        """Notify the subscribers in this process only."""
        with self._lock:
            self._notices[topic] += 1
            subscriptions = list(self._topics.get(topic, ()))
        for subscription in subscriptions:
            subscription.wake(key)

    @contextmanager
    def subscribe(self, topic: str) -> Iterator[Subscription]:
        """Subscribe from a running event loop. Notices are collected from now on."""
        subscription = Subscription(asyncio.get_running_loop())
        with self._lock:
            self._topics[topic].add(subscription)
        try:
            yield subscription
        finally:
            with self._lock:
                self._topics[topic].discard(subscription)


hub = Hub()
