"""The event log of each live run, in the process that runs it.

Readers in this process iterate the log itself, at any speed and from any point, so no event is
lost, repeated or reordered. Topics of the hub: "sidebar" (a conversation changed; key: its id),
"sidebar:<user>" (one of that user's), "conversation:<id>" (a run started or ended there).
"""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from apps.agents.events import ChatEvent, Terminal
from apps.conversations.parts import Part, Transcript
from apps.core.principal import Principal, current


@dataclass(frozen=True)
class Snapshot:
    """The state of a run after event `seq`.

    seq: number of the last event; 0: none yet.
    parts: copies of the parts so far.
    warnings: the distinct warnings so far, in order.
    """

    seq: int
    parts: list[Part]
    warnings: tuple[str, ...] = ()


@dataclass(eq=False)
class RunLog:
    """The events of one run, numbered from 1, and the parts that they produce.

    `append` and `wait` are called on the event loop of the run, `snapshot` from any thread.

    started_at, user_turn_at: times of the assistant turn and of the user turn.
    command: `{name, stepIndex, totalSteps}` of a command's step.
    forks: it begins a branch (`StartedTurn.forks`).
    stored: False if only this process holds the run (`memory`).
    owner_id: the user who owns the conversation; None: nobody.
    events: all events so far; the last one of a finished run is Terminal.
    """

    conversation_id: str
    inflight_id: str
    turn_id: str
    user_text: str
    user_turn_id: str
    provider: str
    model: str
    started_at: datetime = field(default_factory=timezone.now)
    user_turn_at: datetime = field(default_factory=timezone.now)
    command: Mapping[str, Any] | None = None
    forks: bool = False
    stored: bool = True
    owner_id: Any = None
    events: list[ChatEvent] = field(default_factory=list)
    transcript: Transcript = field(default_factory=Transcript)
    finished: bool = False
    _grown: asyncio.Event = field(default_factory=asyncio.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def end(self) -> Terminal:
        """The last event of a run that has finished."""
        event = self.events[-1]
        assert isinstance(event, Terminal)
        return event

    @property
    def seq(self) -> int:
        return len(self.events)

    def append(self, event: ChatEvent) -> None:
        """Log an event, apply it to the transcript and wake the readers.

        Raises RuntimeError after a terminal event.
        """
        if self.finished:
            raise RuntimeError("This run has ended.")
        with self._lock:
            self.events.append(event)
            self.transcript.apply(event)
        self.finished = isinstance(event, Terminal)
        self._grown.set()
        self._grown = asyncio.Event()

    def snapshot(self) -> Snapshot:
        """A consistent copy of the run so far."""
        with self._lock:
            parts = [dict(part) for part in self.transcript.parts]
            return Snapshot(self.seq, parts, tuple(self.transcript.warnings))

    def snapshot_at(self, seq: int) -> Snapshot:
        """The state of the run after its event `seq`."""
        transcript = Transcript()
        for event in self.events[:seq]:
            transcript.apply(event)
        return Snapshot(seq, transcript.parts, tuple(transcript.warnings))

    async def wait(self, after: int) -> None:
        """Return once there is an event numbered above `after`, or the run has finished."""
        while self.seq <= after and not self.finished:
            await self._grown.wait()


# How long, and of how many runs, the log is kept after the end, for readers that lost their stream.
ENDED_SECONDS, MAX_ENDED = 120.0, 32


class LiveRuns:
    """The runs of this process, by conversation."""

    def __init__(self) -> None:
        self._by_conversation: dict[str, RunLog] = {}
        self._ended: dict[str, RunLog] = {}
        self._followers: dict[str, dict[asyncio.Queue[RunLog], Principal]] = defaultdict(dict)

    def add(self, log: RunLog) -> None:
        self._by_conversation[log.conversation_id] = log
        for queue, principal in self._followers.get(log.conversation_id, {}).items():
            if principal.may_see(log.owner_id):
                queue.put_nowait(log)

    def remove(self, log: RunLog) -> None:
        """Called when a run ends. Its log is kept for a while."""
        if self._by_conversation.get(log.conversation_id) is not log:
            return
        del self._by_conversation[log.conversation_id]
        self._ended.pop(log.conversation_id, None)
        self._ended[log.conversation_id] = log
        if len(self._ended) > MAX_ENDED:
            del self._ended[next(iter(self._ended))]
        asyncio.get_running_loop().call_later(ENDED_SECONDS, self.forget, log)

    def forget(self, log: RunLog) -> None:
        if self._ended.get(log.conversation_id) is log:
            del self._ended[log.conversation_id]

    def ended(self, conversation_id: str) -> RunLog | None:
        """The last run of a conversation that ended in this process, if it is still in memory and
        the current user may see the conversation."""
        return _visible(self._ended.get(conversation_id))

    def of(self, conversation_id: str) -> RunLog | None:
        """The live run of a conversation in this process."""
        return self._by_conversation.get(conversation_id)

    def visible(self, conversation_id: str) -> RunLog | None:
        """As `of`; None if the current user may not see the conversation."""
        return _visible(self.of(conversation_id))

    def all(self) -> list[RunLog]:
        return list(self._by_conversation.values())

    @contextmanager
    def follow(self, conversation_id: str) -> "Iterator[asyncio.Queue[RunLog]]":
        """A queue of every run that starts in a conversation from now on, even if it ends at once.

        Runs that the current user may not see are left out. The conversation need not exist yet.
        Used on the event loop.
        """
        queue: asyncio.Queue[RunLog] = asyncio.Queue()
        self._followers[conversation_id][queue] = current()
        try:
            yield queue
        finally:
            del self._followers[conversation_id][queue]
            if not self._followers[conversation_id]:
                del self._followers[conversation_id]


def _visible(log: RunLog | None) -> RunLog | None:
    return log if log is not None and current().may_see(log.owner_id) else None


live_runs = LiveRuns()
