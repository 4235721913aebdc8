"""Wake-ups: "something about this key changed; come and read it".

A notice carries a key and no data. The reader fetches the present state itself, so a slow reader
misses nothing that still matters, and a burst of notices about one key costs it one read. (The
channel layer cannot do this job: it drops messages silently after 100.)

They wake readers of this process. Where several processes share the rows, `broadcast` is
told too and passes on what was said (apps/site/relay.py).
"""

import asyncio
import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import contextmanager


class Subscription:
    """The keys that changed since the reader last looked, oldest first, each once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._keys: dict[str, None] = {}
        self._ready = asyncio.Event()

    def wake(self, key: str) -> None:
        """Called from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._add, key)
        except RuntimeError:
            # The reader's loop has closed; it is about to unsubscribe.
            return

    def _add(self, key: str) -> None:
        self._keys[key] = None
        self._ready.set()

    async def batches(self) -> AsyncGenerator[list[str], None]:
        """All that changed since the last look at once, for a reader to whom one read does."""
        while True:
            await self._ready.wait()
            keys, self._keys = list(self._keys), {}
            self._ready.clear()
            yield keys

    async def __aiter__(self) -> AsyncIterator[str]:
        async for keys in self.batches():
            for key in keys:
                yield key


class Hub:
    """Topics and who listens to them, in this process."""

    broadcast: Callable[[str, str], None] | None = None

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._topics: dict[str, set[Subscription]] = defaultdict(set)
        self._notices: Counter[str] = Counter()
        self._begun = time.time_ns()

    def version(self, topic: str) -> str:
        """Another one after every notice. For a reader that cannot listen yet, as a page before
        its socket is open: where the mark differs by then, it has missed something."""
        return f"{self._begun}-{self._notices[topic]}"

    def notify(self, topic: str, key: str = "") -> None:
        """Tell every subscriber of `topic` that `key` of the rows changed. Safe from any thread."""
        self.notify_here(topic, key)
        if self.broadcast is not None:
            self.broadcast(topic, key)

    def notify_here(self, topic: str, key: str = "") -> None:
        """The same for what only this process has."""
        with self._lock:
            self._notices[topic] += 1
            subscriptions = list(self._topics.get(topic, ()))
        for subscription in subscriptions:
            subscription.wake(key)

    def has_subscribers(self, topic: str) -> bool:
        with self._lock:
            return bool(self._topics.get(topic))

    @contextmanager
    def subscribe(self, topic: str) -> Iterator[Subscription]:
        """Listen from inside a running event loop; notices sent from now on are kept."""
        subscription = Subscription(asyncio.get_running_loop())
        with self._lock:
            self._topics[topic].add(subscription)
        try:
            yield subscription
        finally:
            with self._lock:
                self._topics[topic].discard(subscription)


hub = Hub()
