"""Decode `chat.completion.chunk` frames (OpenAI API, Chat Completions, streaming) into ModelEvents.

Servers differ where the format is open and sometimes where it is not, so every field of a frame is
validated.
"""

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from apps.agents import limits
from apps.agents.events import ModelEvent, ToolCallRequested, UsageReported
from apps.agents.limits import MAX_RECORDED_CALLS, reject_long_arguments
from apps.agents.messages import ToolCall, Usage
from apps.agents.providers.calls import DECODER, new_id, with_arguments
from apps.agents.providers.characters import Characters, clean
from apps.agents.providers.printed_calls import PrintedCalls
from apps.agents.reasoning import Delta, MarkerParser
from apps.core.http.limits import MAX_NAME, size
from apps.core.types import JSON

# Finish reason → why the answer is incomplete.
UNFINISHED = {
    "length": "The model reached its output limit before the answer was complete.",
    "content_filter": "The server's content filter withheld the rest of the answer.",
    "error": "The server ended the answer with an error.",
}
# What models write behind arguments.
_TOKEN = re.compile(r"</?[|｜]?\w{1,40}[|｜]?>|```")
# Fields of reasoning.
REASONING = ("reasoning_content", "reasoning", "reasoning_text", "thinking", "thought")
CONNECTION_LOST = "The connection was cut before the answer was complete."


class CompletionDecoder:
    """Decodes one round: `feed` each frame, call `end`, then read `problem`."""

    def __init__(self, printed: PrintedCalls | None = None) -> None:
        self._parser = MarkerParser()
        self._printed = printed or PrintedCalls()
        self._text, self._thinking = Characters(), Characters()
        self._calls = CallAssembler()
        self._has_deltas = False
        self.finish_reason: str | None = None

    def feed(self, frame: Any) -> list[ModelEvent]:
        frame = _dict(frame)
        # Reported at once: a stopped answer never reaches `end`.
        reported = frame.get("usage")
        usage = _usage(_dict(reported)) if reported else None
        choice = next((one for one in _dicts(frame.get("choices")) if not one.get("index")), {})
        reason = choice.get("finish_reason")
        self.finish_reason = reason if isinstance(reason, str) and reason else self.finish_reason
        self._has_deltas |= choice.get("delta") is not None
        # A reply that is no stream has a message; in a stream it repeats what came.
        delta = _dict(choice.get("delta" if self._has_deltas else "message"))
        for call in _dicts(delta.get("tool_calls")):
            self._calls.feed(call)
        if call := _dict(delta.get("function_call")):  # of 2023
            self._calls.feed({"index": 0, "function": call})
        events = self._decode_delta(delta)
        return [*events, UsageReported(usage)] if usage else events

    def _decode_delta(self, delta: JSON) -> list[ModelEvent]:
        deltas: list[Delta] = []
        # Some servers send the same reasoning under several names.
        thinking = next(filter(None, (_as_text(delta.get(name)) for name in REASONING)), "")
        thinking = thinking or "".join(
            _as_text(part.get("text")) or _as_text(part.get("summary"))
            for part in _dicts(delta.get("reasoning_details"))
        )
        thinking += "".join(_as_text(part.get("thinking")) for part in _dicts(delta.get("content")))
        if thinking := self._thinking.feed(thinking):
            deltas += self._parser.reasoning(thinking)
        if text := self._text.feed(
            _as_text(delta.get("content")) or _as_text(delta.get("refusal"))
        ):
            deltas += self._parser.feed(text)
        return [*self._printed.feed(deltas)]

    def done(self) -> None:
        """The server says that the answer is complete. Some say no more than that."""
        self.finish_reason = self.finish_reason or "stop"

    def end(self) -> list[ModelEvent]:
        """Return the buffered text and, if the round is complete, its calls."""
        calls, is_complete = self._calls.calls(), not self.problem
        events: list[ModelEvent] = []
        events += self._printed.feed(self._parser.flush(calls=bool(calls)))
        rest, printed = self._printed.end(is_complete=is_complete, has_calls=bool(calls))
        events += rest
        if is_complete:
            events += [ToolCallRequested(call) for call in calls or printed]
        return events

    @property
    def problem(self) -> str | None:
        """A sentence that says why the answer is incomplete, or None."""
        if not self.finish_reason:
            return CONNECTION_LOST
        return UNFINISHED.get(self.finish_reason) or self._printed.problem or None


@dataclass
class _Call:
    """A call under assembly. `size` counts all argument bytes, also those dropped."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    size: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether the arguments are a whole JSON value."""
        try:
            DECODER.decode("".join(self.pieces))
        except (ValueError, RecursionError):
            return False
        return True

    def add(self, arguments: str) -> None:
        """Append a fragment of the arguments; beyond the limit, only count it."""
        if arguments and self.size <= limits.MAX_TOOL_ARGUMENT_BYTES:
            self.pieces.append(arguments)
        self.size += size(arguments)


@dataclass
class CallAssembler:
    """Assembles tool calls from their fragments.

    A fragment belongs to the call with its index; without an index, to the call with its id;
    without both, to the last call. Some servers number all calls 0: under the same index, a
    different id starts another call, and so does a name after complete arguments, or another name
    after some. Calls beyond `MAX_RECORDED_CALLS` are dropped.
    """

    _calls: list[_Call] = field(default_factory=list)
    _by_index: dict[int, _Call] = field(default_factory=dict)

    def feed(self, piece: JSON) -> None:
        function = _dict(piece.get("function")) or piece
        name = _as_text(function.get("name"))
        arguments = function.get("arguments", function.get("parameters"))
        call = self._find_call(piece.get("index"), _as_text(piece.get("id"))[:MAX_NAME], name)
        if call is None:
            return
        # A name may come in fragments, or complete in every fragment.
        call.name = (call.name + (name if name != call.name else ""))[:MAX_NAME]
        # A server that sends arguments as an object sends them complete.
        call.add(json.dumps(arguments) if isinstance(arguments, dict) else _as_text(arguments))

    def _find_call(self, index: Any, id: str, name: str) -> _Call | None:
        call = (
            self._by_index.get(index)
            if isinstance(index, int)
            else self._call_without_index(id, name)
        )
        if call is None or _starts_another(call, id, name):
            if len(self._calls) >= MAX_RECORDED_CALLS:
                return None
            call = _Call()
            self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        call.id = call.id or id
        return call

    def _call_without_index(self, id: str, name: str) -> _Call | None:
        if id:
            return next((call for call in self._calls if call.id == id), None)
        last = self._calls[-1] if self._calls else None
        starts_new_call = last is not None and bool(name and last.name and last.pieces)
        return None if starts_new_call else last

    def calls(self) -> list[ToolCall]:
        """Return the calls in order, each with its own id, its arguments or `error` set."""
        calls: dict[str, ToolCall] = {}
        for call in (one for assembled in self._calls for one in _read(assembled)):
            call = replace(call, id=new_id()) if call.id in calls else call
            calls[call.id] = call
        return list(calls.values())[:MAX_RECORDED_CALLS]


def _starts_another(call: _Call, id: str, name: str) -> bool:
    """Whether a fragment under the index of a call belongs to another call."""
    if id and call.id:
        # Some servers send a new id with each fragment.
        return id != call.id and bool(name or call.is_complete)
    if id or not (name and call.pieces):
        return False
    return name != call.name or call.is_complete


def _read(call: _Call) -> list[ToolCall]:
    """One call, or several if there is more than one object of arguments: some servers send all
    calls under one id, an empty object first, or the arguments again."""
    made = ToolCall(clean(call.id) or new_id(), clean(call.name))
    text = "".join(call.pieces)
    if call.size > limits.MAX_TOOL_ARGUMENT_BYTES:
        return [reject_long_arguments(made, clean(text))]
    try:
        values = _values(text)
    except (ValueError, RecursionError) as error:
        return [replace(made, error=f"The arguments are not valid JSON: {error}")]
    return [with_arguments(made, value) for value in values]


def _values(text: str) -> list[Any]:
    """The objects of arguments, at least one. Raises ValueError and RecursionError."""
    values: list[Any] = []
    text = text.strip().removeprefix("```json").removeprefix("```").strip()
    for _ in range(MAX_RECORDED_CALLS if text else 0):
        value, end = DECODER.raw_decode(text)
        if isinstance(value, str):  # JSON in JSON
            value = DECODER.decode(value)
        text = text[end:].strip()
        if value not in values:
            values.append(value)
        if text[:1] != "{":
            text = _TOKEN.sub("", text).strip()
            break
    if text:
        raise ValueError(f"{text[:20]!r} follows them")
    return [value for value in values if value != {}] or [{}]


def _usage(usage: JSON) -> Usage | None:
    details = _dict(usage.get("prompt_tokens_details"))
    counts = Usage(
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        _count(usage.get("total_tokens")),
        _count(details.get("cached_tokens")),
    )
    return None if counts == Usage() else counts


def _count(value: Any) -> int | None:
    number = isinstance(value, int) and not isinstance(value, bool)
    return value if number and value >= 0 else None


def _dict(value: Any) -> JSON:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[JSON]:
    value = [value] if isinstance(value, dict) else value
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _as_text(value: Any) -> str:
    """Return a string, or the joined texts of content parts; "" for anything else."""
    if isinstance(value, list | dict):
        parts = (part.get("text") or part.get("content") for part in _dicts(value))
        return "".join(part for part in parts if isinstance(part, str))
    return value if isinstance(value, str) else ""
