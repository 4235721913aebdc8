"""Events of a run as the frames of `/ws` (docs/contract.md §2.5). Pure: no rows, no sockets.

Frames of a run are numbered from 1: `user_turn`, `inflight_snapshot`, and event n of the log as
frame n + 2. A frame that stands for several events carries the number of the last.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from apps.agents.events import (
    ChatEvent,
    ReasoningDelta,
    Terminal,
    TextDelta,
    TextReclassified,
    ThreadNamed,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    TurnStopped,
    Warned,
)
from apps.conversations.parts import Part, call_event, content, reasoning, tool_event
from apps.conversations.stream import RunLog, Snapshot
from apps.conversations.types import Outcome
from apps.core.values.times import wire_time

Frame = dict[str, Any]
Delta = TextDelta | ReasoningDelta

FRAMES_BEFORE = 2
NO_INFLIGHT = {
    "code": "INFLIGHT_NOT_FOUND",
    "message": "No active in-flight run found for conversation.",
}


@dataclass(frozen=True)
class RunFrames:
    """Renders the frames of one run."""

    log: RunLog

    def opening(self) -> list[Frame]:
        """The first two frames, for clients that subscribed before the run started."""
        user_turn = self._frame(
            "user_turn",
            1,
            inflightId=self.log.inflight_id,
            content=self.log.user_text,
            createdAt=wire_time(self.log.user_turn_at),
        )
        return [user_turn, self.snapshot(Snapshot(0, []))]

    def snapshot(self, now: Snapshot) -> Frame:
        inflight = inflight_of(self.log, now)
        del inflight["seq"]
        return self._frame("inflight_snapshot", now.seq + FRAMES_BEFORE, inflight=inflight)

    def events(self, events: Sequence[ChatEvent], before: int = 0) -> Iterator[Frame]:
        """The frames of consecutive events; neighbouring deltas of one kind are joined.

        before: number of the event before them.
        """
        for event, last in joined(events, before):
            if isinstance(event, TextReclassified):
                yield self.snapshot(self.log.snapshot_at(last))
                continue
            frame = self._event(event, last + FRAMES_BEFORE)
            if frame is not None:
                yield frame

    def _event(self, event: ChatEvent, seq: int) -> Frame | None:
        of_run = {"inflightId": self.log.inflight_id}
        match event:
            case TextDelta(text=text):
                return self._frame("assistant_delta", seq, **of_run, delta=text)
            case ReasoningDelta(text=text):
                return self._frame("analysis_delta", seq, **of_run, delta=text)
            case ToolStarted(call=call):
                return self._frame("tool_event", seq, **of_run, event=call_event(call))
            case ToolFinished(result=result):
                return self._frame(
                    "tool_event", seq, **of_run, event=call_event(result.call, result)
                )
            case TurnFinished() | TurnFailed() | TurnStopped():
                return self._frame("turn_final", seq, **of_run, **self._end(event))
            case Warned(message=message):
                return self._frame("stream_warning", seq, **of_run, message=message)
            case TurnStarted() | ThreadNamed() | TextReclassified():
                return None
            case _:
                assert_never(event)

    def _end(self, event: Terminal) -> Frame:
        outcome = Outcome.of(event)
        end: Frame = {"status": str(outcome.status)}
        optional: Frame = {"threadId": self.log.transcript.thread_id}
        optional |= {"error": outcome.error, "usage": outcome.usage, "timing": outcome.timing}
        return end | {name: value for name, value in optional.items() if value}

    def _frame(self, kind: str, seq: int, **fields: Any) -> Frame:
        return frame(kind, seq, conversationId=self.log.conversation_id, **fields)


def frame(kind: str, seq: int, **fields: Any) -> Frame:
    """A message of the server."""
    return {"protocolVersion": "v1", "type": kind, "seq": seq, **fields}


def joined(
    events: Sequence[ChatEvent],
    before: int,
    kinds: tuple[type[Delta], ...] = (TextDelta, ReasoningDelta),
) -> Iterator[tuple[ChatEvent, int]]:
    """Events with their numbers, the first after `before`. Neighbouring deltas of one of the kinds
    become one."""
    texts: list[str] = []
    pairs = zip(events, [*events[1:], None], strict=False)
    for number, (event, following) in enumerate(pairs, before + 1):
        if not isinstance(event, kinds):
            yield event, number
            continue
        texts.append(event.text)
        if type(following) is not type(event):
            yield type(event)("".join(texts)), number
            texts.clear()


def inflight_of(log: RunLog, now: Snapshot) -> Frame:
    """The `inflight` object of a run of this process, at a snapshot."""
    seq = now.seq + FRAMES_BEFORE
    return inflight(log.inflight_id, now.parts, wire_time(log.started_at), seq, log.command)


def inflight(
    inflight_id: str,
    parts: Sequence[Part],
    started_at: str,
    seq: int,
    command: Mapping[str, Any] | None = None,
) -> Frame:
    return {
        "inflightId": inflight_id,
        "assistantText": content(parts),
        "assistantThink": reasoning(parts),
        "toolEvents": [tool_event(part) for part in parts if part["type"] == "tool"],
        "startedAt": started_at,
        "seq": seq,
        **({"command": dict(command)} if command else {}),
    }


def not_inflight(conversation_id: str, inflight_id: str) -> Frame:
    """The answer to a `cancel_inflight` without a live run."""
    return frame(
        "turn_final",
        1,
        conversationId=conversation_id,
        inflightId=inflight_id,
        status="failed",
        error=NO_INFLIGHT,
    )
