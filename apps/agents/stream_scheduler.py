"""Schedule the answers that stream from one process: new requests first, larger bursts under load.

A request takes about twelve event-loop steps to reach its model, and each step waits for every task
that is ready. So streams pause while a request starts. When many streams run, each also pauses
after a burst and lets text collect in its connection: reading four fragments at once costs half as
much as reading them one by one. If the process still falls behind, its timers fire late, and the
measured delay lengthens the pauses.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

# The time a request takes from its view or consumer to its model.
PRIORITY_SECONDS = 0.05
# Up to this many streams run without pauses. Above it, each stream pauses PAUSE_SECONDS for every
# stream that runs: fifty streams send ten bursts a second each, which still reads well.
MAX_UNPACED_STREAMS = 8
PAUSE_SECONDS = 0.002
# The mean delay of timers, over about DELAY_WINDOW wake-ups, adds DELAY_FACTOR times itself.
DELAY_FACTOR = 10
DELAY_WINDOW = 50
MAX_PAUSE_SECONDS = 0.4
# Events that arrive this soon after a pause were buffered during it and belong to one burst.
BURST_SECONDS = 0.005


class StreamScheduler:
    """The streams of one process. Not thread-safe: use it in the event loop only."""

    def __init__(self) -> None:
        self._streams: WeakSet[ScheduledStream] = WeakSet()
        self._starting, self._until = "", 0.0
        self._delay = 0.0

    def prioritise(self, conversation_id: str) -> None:
        """Pause the streams of other conversations for PRIORITY_SECONDS while a request starts."""
        self._starting, self._until = conversation_id, time.monotonic() + PRIORITY_SECONDS

    @contextmanager
    def stream(self, conversation_id: str) -> "Iterator[ScheduledStream]":
        """Count a stream as running until the block ends."""
        stream = ScheduledStream(self, conversation_id)
        self._streams.add(stream)
        try:
            yield stream
        finally:
            self._streams.discard(stream)

    def record_delay(self, seconds: float) -> None:
        """Add a timer's delay, in seconds, to the moving average."""
        self._delay += (seconds - self._delay) / DELAY_WINDOW

    def pause_seconds(self, conversation_id: str) -> float:
        """Return how long a stream must pause now; zero or less: not at all."""
        streams = len(self._streams)
        pause = 0.0
        if streams > MAX_UNPACED_STREAMS:
            pause = min(streams * PAUSE_SECONDS + self._delay * DELAY_FACTOR, MAX_PAUSE_SECONDS)
        if self._starting == conversation_id:
            return pause
        return max(pause, self._until - time.monotonic())


class ScheduledStream:
    """One running answer. Created by `StreamScheduler.stream`."""

    def __init__(self, scheduler: StreamScheduler, conversation_id: str) -> None:
        self._scheduler, self._conversation_id = scheduler, conversation_id
        self._resumed = 0.0

    async def throttle(self) -> None:
        """Pause between two bursts if others need the time. Called after each event."""
        if time.monotonic() - self._resumed < BURST_SECONDS:
            return
        pause = self._scheduler.pause_seconds(self._conversation_id)
        if pause > 0:
            due = time.monotonic() + pause
            await asyncio.sleep(pause)
            self._resumed = time.monotonic()
            self._scheduler.record_delay(self._resumed - due)
        else:
            # A model that sends without a pause would otherwise block all other tasks.
            await asyncio.sleep(0)
            self._resumed = time.monotonic()


stream_scheduler = StreamScheduler()
