"""How the answers under way share one process: who asks goes first, and many speak in larger
pieces.

A question takes a dozen steps to its model, and each of them waits for whatever is ready then. So
answers that are being told step aside while a question is on its way; and the more of them there
are, the longer each rests after a piece, while its next words gather in the connection: to read
four of them at once is half the work. A process that falls behind all the same wakes them late, and
the later it does the longer they rest: then words come in larger pieces, and questions still get
through.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

# About what a question takes from its door to its model.
HEAD_START_SECONDS = 0.05
# With so few answers nobody rests; with more, so long for each of them: ten pieces a second, with
# fifty, still read well.
FEW = 8
REST_SECONDS = 0.002
# And so many times as long as they are woken late, on the average of about so many wakes.
LATE_TIMES = 10
WAKES = 50
MOST_REST_SECONDS = 0.4
# What comes within so short a time after a rest had gathered meanwhile, and is told as one.
PIECE_SECONDS = 0.005


class StreamScheduler:
    """Of one process, kept in its event loop."""

    def __init__(self) -> None:
        self._streams: WeakSet[ScheduledStream] = WeakSet()
        self._asking, self._until = "", 0.0
        self._late = 0.0

    def ask(self, conversation_id: str) -> None:
        """A question begins its way."""
        self._asking, self._until = conversation_id, time.monotonic() + HEAD_START_SECONDS

    @contextmanager
    def answer(self, conversation_id: str) -> "Iterator[ScheduledStream]":
        """For as long as an answer is told."""
        stream = ScheduledStream(self, conversation_id)
        self._streams.add(stream)
        try:
            yield stream
        finally:
            self._streams.discard(stream)

    def woke(self, late: float) -> None:
        """A rest has ended so many seconds after its time."""
        self._late += (late - self._late) / WAKES

    def rest(self, conversation_id: str) -> float:
        """The seconds for which an answer is to be silent now."""
        answers = len(self._streams)
        many = 0.0
        if answers > FEW:
            many = min(answers * REST_SECONDS + self._late * LATE_TIMES, MOST_REST_SECONDS)
        if self._asking == conversation_id:
            return many
        return max(many, self._until - time.monotonic())


class ScheduledStream:
    """One answer's part in it."""

    def __init__(self, stream_scheduler: StreamScheduler, conversation_id: str) -> None:
        self._pace, self._conversation_id = stream_scheduler, conversation_id
        self._rested = 0.0

    async def throttle(self) -> None:
        """Between two events: rest where others need the time, and not in the middle of a piece."""
        if time.monotonic() - self._rested < PIECE_SECONDS:
            return
        rest = self._pace.rest(self._conversation_id)
        if rest > 0:
            due = time.monotonic() + rest
            await asyncio.sleep(rest)
            self._rested = time.monotonic()
            self._pace.woke(self._rested - due)
        else:
            # A model that sends without a pause would otherwise keep all others waiting.
            await asyncio.sleep(0)
            self._rested = time.monotonic()


stream_scheduler = StreamScheduler()
