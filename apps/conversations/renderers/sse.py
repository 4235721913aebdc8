"""Events of a run as the frames of `POST /chat` with `Accept: text/event-stream` (§2.4).

The id of a frame is `<turn id>:<n>`, n being the number of its last event. `complete` follows
`final` and is numbered after it. Turn ids tell runs apart; in-flight ids of clients may repeat.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from apps.agents.events import (
    ChatEvent,
    ReasoningDelta,
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
from apps.conversations.models import Turn
from apps.conversations.parts import Transcript, call_event, content
from apps.conversations.renderers.json import inflight_of, joined
from apps.conversations.stream import RunLog

HEARTBEAT = ":\n\n"
# In place of the number: the end of an answer that is read from its row.
END = "end"
EVENT_ID = re.compile(rf"\A([0-9a-f-]{{36}}):([0-9]{{1,18}}|{END})\Z")


def frames(log: RunLog, events: Sequence[ChatEvent], before: int, after: int) -> Iterator[str]:
    """The frames numbered above `after` of consecutive events, which follow event `before`."""
    for event, seq in joined(events, before, (TextDelta,)):
        if isinstance(event, TextReclassified) and seq > after:
            # Replaces what the reader has: a token cannot be taken back.
            state = {"type": "snapshot", "inflight": inflight_of(log, log.snapshot_at(seq))}
            yield frame(state, f"{log.turn_id}:{seq}")
        for number, message in enumerate(messages(event, log.transcript), start=seq):
            if number > after:
                yield frame(message, f"{log.turn_id}:{number}")


def frame(message: dict[str, Any], id: str = "") -> str:
    # json.dumps writes no line breaks, so one data line is enough.
    data = f"data: {json.dumps(message, allow_nan=False)}\n\n"
    return f"id: {id}\n{data}" if id else data


def parse_id(text: str) -> tuple[str, int | None]:
    """The turn id and the number of a frame's id; None for END. ("", 0) if it is not one."""
    match = EVENT_ID.match(text)
    if match is None:
        return "", 0
    turn_id, number = match.groups()
    return turn_id, None if number == END else int(number)


def last_number(log: RunLog) -> int:
    """The number of the last frame of a run that has finished."""
    return log.seq + len(messages(log.end, log.transcript)) - 1


def stored_end(turn: Turn) -> Iterator[str]:
    """The frames that end a stored answer. Only the last one has an id."""
    transcript = Transcript(turn.parts)
    transcript.thread_id = turn.conversation.flags.get("threadId")
    match turn.status:
        case Turn.Status.STOPPED:
            end = messages(TurnStopped(), transcript)
        case Turn.Status.FAILED:
            end = [{"type": "error", "message": (turn.error or {}).get("message", "")}]
        case _:
            end = _end(transcript)
    *others, last = end
    yield from map(frame, others)
    yield frame(last, f"{turn.pk}:{END}")


def messages(event: ChatEvent, transcript: Transcript) -> list[dict[str, Any]]:
    """The messages of an event (contract.md §2.4)."""
    match event:
        case TextDelta(text=text) | ReasoningDelta(text=text):
            kind = "token" if isinstance(event, TextDelta) else "analysis"
            return [{"type": kind, "content": text}]
        case ToolStarted(call=call):
            return [call_event(call)]
        case ToolFinished(result=result):
            return [call_event(result.call, result)]
        case TurnFinished():
            return _end(transcript)
        case TurnFailed(message=text):
            return [{"type": "error", "message": text}]
        case TurnStopped():
            return [{"type": "error", "message": "generation stopped"}]
        case ThreadNamed(thread_id=thread_id):
            return [{"type": "thread", "threadId": thread_id}]
        case Warned(message=text):
            return [{"type": "warning", "message": text}]
        case TurnStarted() | TextReclassified():
            return []
        case _:
            assert_never(event)


def _end(transcript: Transcript) -> list[dict[str, Any]]:
    """The messages that end a successful answer."""
    message = {"role": "assistant", "content": content(transcript.parts)}
    thread = {"threadId": transcript.thread_id} if transcript.thread_id else {}
    return [{"type": "final", "message": message}, {"type": "complete", **thread}]
