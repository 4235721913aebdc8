"""The frames of a streamed chat completion, folded into ModelEvents.

Servers differ in everything that the format leaves open and in some that it does not: nothing here
trusts a frame to have the right shape.
"""

import json
import math
from dataclasses import dataclass, field
from typing import Any, NoReturn
from uuid import uuid4

from apps.agents.events import (
    ModelEvent,
    ToolCallRequested,
    UsageReported,
)
from apps.agents.limits import max_recorded_calls, reject_long_arguments
from apps.agents.messages import ToolCall, Usage
from apps.agents.providers.calls import checked
from apps.agents.providers.characters import Characters, clean
from apps.agents.reasoning import MarkerParser
from apps.core.config import config
from apps.core.limits import MAX_NAME, size

JSON = dict[str, Any]

# Why an answer that has ended is not whole.
UNFINISHED = {
    "length": "The model reached its output limit before the answer was complete.",
    "content_filter": "The server's content filter withheld the rest of the answer.",
}
CUT = "The connection was cut before the answer was complete."


class Round:
    """One request's answer. `feed` it each frame, then `end` it, then ask what is `wrong`."""

    def __init__(self) -> None:
        self._parser = MarkerParser()
        self._text, self._thinking = Characters(), Characters()
        self._calls = CallAssembler()
        self.finish_reason: str | None = None

    def feed(self, frame: Any) -> list[ModelEvent]:
        frame = _dict(frame)
        # Told at once: an answer that is stopped has no end to tell it at.
        reported = frame.get("usage")
        usage = _usage(_dict(reported)) if reported else None
        choices = frame.get("choices")
        choice = _dict(choices[0]) if isinstance(choices, list) and choices else {}
        reason = choice.get("finish_reason")
        self.finish_reason = reason if isinstance(reason, str) and reason else self.finish_reason
        delta = _dict(choice.get("delta"))
        for call in _dicts(delta.get("tool_calls")):
            self._calls.feed(call)
        events = self._said(delta)
        return [*events, UsageReported(usage)] if usage else events

    def _said(self, delta: JSON) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        # Some servers send the same thinking under both names.
        thinking = _plain(delta.get("reasoning_content")) or _plain(delta.get("reasoning"))
        thinking += "".join(_plain(part.get("thinking")) for part in _dicts(delta.get("content")))
        if thinking := self._thinking.feed(thinking):
            events += self._parser.reasoning(thinking)
        if text := self._text.feed(_plain(delta.get("content")) or _plain(delta.get("refusal"))):
            events += self._parser.feed(text)
        return events

    def end(self) -> list[ModelEvent]:
        """What was held back and, if the round came to its end, the calls."""
        events: list[ModelEvent] = [*self._parser.flush()]
        if not self.wrong:
            events += [ToolCallRequested(call) for call in self._calls.calls()]
        return events

    @property
    def wrong(self) -> str | None:
        """In a sentence, why the answer is not whole."""
        return UNFINISHED.get(self.finish_reason) if self.finish_reason else CUT


@dataclass
class _Call:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, arguments: str) -> None:
        """More of the arguments; what goes beyond the limit is dropped, and only counted."""
        if arguments and self.size <= config().max_tool_argument_bytes:
            self.pieces.append(arguments)
        self.size += size(arguments)


@dataclass
class CallAssembler:
    """Tool calls from their pieces.

    A piece belongs to the call of its index; without one, to the call of its id; without either, to
    the last call. Another id under a known index is another call: some servers number all calls 0.
    Of calls beyond all that a round may have nothing is kept.
    """

    _calls: list[_Call] = field(default_factory=list)
    _by_index: dict[int, _Call] = field(default_factory=dict)

    def feed(self, piece: JSON) -> None:
        function = _dict(piece.get("function"))
        name, arguments = _plain(function.get("name")), function.get("arguments")
        call = self._call_of(piece.get("index"), _plain(piece.get("id"))[:MAX_NAME], name)
        if call is None:
            return
        # A name may come in pieces, or whole with every piece.
        call.name = (call.name + (name if name != call.name else ""))[:MAX_NAME]
        # One that has its arguments as an object sends them whole.
        call.add(json.dumps(arguments) if isinstance(arguments, dict) else _plain(arguments))

    def _call_of(self, index: Any, id: str, name: str) -> _Call | None:
        known = (
            self._by_index.get(index) if isinstance(index, int) else self._without_index(id, name)
        )
        if known is None or (id and known.id and known.id != id):
            if len(self._calls) >= max_recorded_calls():
                return None
            known = _Call()
            self._calls.append(known)
        if isinstance(index, int):
            self._by_index[index] = known
        known.id = known.id or id
        return known

    def _without_index(self, id: str, name: str) -> _Call | None:
        if id:
            return next((call for call in self._calls if call.id == id), None)
        last = self._calls[-1] if self._calls else None
        begins_anew = last is not None and bool(name and last.name and last.pieces)
        return None if begins_anew else last

    def calls(self) -> list[ToolCall]:
        """The calls in order, each with its arguments or with what is wrong with them."""
        return [_read(call) for call in self._calls]


def _read(call: _Call) -> ToolCall:
    id, name = clean(call.id) or f"call_{uuid4().hex[:24]}", clean(call.name)
    text = "".join(call.pieces)
    if call.size > config().max_tool_argument_bytes:
        return reject_long_arguments(ToolCall(id, name), clean(text))
    try:
        arguments = json.loads(text.strip() or "{}", parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        return ToolCall(id, name, error=f"The arguments are not valid JSON: {error}")
    return checked(ToolCall(id, name), arguments)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON value")


def _finite(text: str) -> float:
    """1e999 is valid JSON, and infinite: no database keeps it."""
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


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
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _plain(value: Any) -> str:
    """A text, or the texts of a list of content parts."""
    if isinstance(value, list):
        return "".join(_plain(part.get("text")) for part in _dicts(value))
    return value if isinstance(value, str) else ""
