"""Events of a run as the frames of `POST /chat` with `Accept: text/event-stream` (§2.4)."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from apps.agents.events import (
    ChatEvent,
    ReasoningDelta,
    TextDelta,
    ThreadNamed,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    TurnStopped,
    Warned,
)
from apps.conversations.parts import Transcript, content
from apps.conversations.renderers.json import tool_request, tool_result

HEARTBEAT = ":\n\n"


def frames(events: Iterable[ChatEvent], transcript: Transcript) -> Iterator[str]:
    """The frames of events. `transcript` is the whole run, for the full text at its end."""
    for event in joined(events):
        for message in messages(event, transcript):
            # json.dumps writes no line breaks, so one data line is enough.
            yield f"data: {json.dumps(message, allow_nan=False)}\n\n"


def joined(events: Iterable[ChatEvent]) -> Iterator[ChatEvent]:
    """The events, with neighbouring text deltas joined."""
    words: list[str] = []
    for event in events:
        if isinstance(event, TextDelta):
            words.append(event.text)
            continue
        if words:
            yield TextDelta("".join(words))
            words.clear()
        yield event
    if words:
        yield TextDelta("".join(words))


def messages(event: ChatEvent, transcript: Transcript) -> list[dict[str, Any]]:
    """The messages of an event (contract.md §2.4)."""
    match event:
        case TextDelta(text=text) | ReasoningDelta(text=text):
            kind = "token" if isinstance(event, TextDelta) else "analysis"
            return [{"type": kind, "content": text}]
        case ToolStarted(call=call):
            return [tool_request(call)]
        case ToolFinished(result=result):
            return [tool_result(result)]
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
        case TurnStarted():
            return []
        case _:
            assert_never(event)


def _end(transcript: Transcript) -> list[dict[str, Any]]:
    """The messages that end a successful answer."""
    message = {"role": "assistant", "content": content(transcript.parts)}
    thread = {"threadId": transcript.thread_id} if transcript.thread_id else {}
    return [{"type": "final", "message": message}, {"type": "complete", **thread}]
