"""What one answer may take: text, thinking, tool calls and time; each limit is a setting.

Past most limits the answer ends as failed and keeps what was said. Calls are different: one call
too many, or one whose arguments are too long, becomes an error that the model reads.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from apps.agents.events import ReasoningDelta, TextDelta, ToolFinished, ToolStarted, Warned
from apps.agents.messages import ToolCall, ToolResult, Usage
from apps.core.config import config
from apps.core.limits import MAX_NAME, Budget, cut, json_size, named, past

# What is kept of arguments that are too long.
KEPT_ARGUMENTS = 500
# Calls of a round that get an error because there are too many; what comes after them is dropped,
# since thousands of errors would fill the next request.
MAX_REFUSED = 100
# What is kept of a tool that the provider ran itself: its result, and its error in words.
MAX_RESULT = 256_000
MAX_ERROR = 2_000
MAX_WARNINGS = 100
# No answer has more tokens; a count beyond it is nonsense, and no database takes any integer.
MAX_TOKENS = 10**12

Said = TypeVar("Said", TextDelta, ReasoningDelta)


def most_calls() -> int:
    """The calls of a round of which anything is kept, those that get an error included."""
    return config().max_tool_calls + MAX_REFUSED


class AnswerLimits:
    """Of one answer, from when it is made."""

    def __init__(self, max_rounds: int) -> None:
        self.text = Budget("max_answer_bytes")
        self.reasoning = Budget("max_reasoning_bytes")
        self._until = time.monotonic() + config().max_answer_seconds
        self._own_calls_left = config().max_tool_calls * max(max_rounds, 1)
        self._warnings_left = MAX_WARNINGS

    def seconds_left(self) -> float:
        """Raises Unavailable (PROVIDER_ERROR) when the time of the answer is over."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise past("max_answer_seconds")
        return left

    def warns(self, event: Warned) -> bool:
        """Whether this warning is still passed on."""
        self._warnings_left -= 1
        return self._warnings_left >= 0

    def own_call(self, event: ToolStarted) -> ToolStarted:
        """A call that the provider runs itself, kept short; they have no rounds to be counted in.

        Raises Unavailable (PROVIDER_ERROR) for more calls than all rounds together may have.
        """
        if self._own_calls_left <= 0:
            raise past("max_tool_calls")
        self._own_calls_left -= 1
        return ToolStarted(kept_short(event.call))


def fits(said: Said, budget: Budget) -> Said | None:
    """The part of a delta that the budget has room for, if there is any."""
    text = budget.take(said.text)
    return replace(said, text=text) if text else None


def kept_short(call: ToolCall) -> ToolCall:
    """A call with a name, an id and arguments of a length that can be stored and sent back.

    Arguments that are too long are cut, and the call has an error that says so.
    """
    call = replace(call, id=call.id[:MAX_NAME], name=call.name[:MAX_NAME])
    if argument_size(call.arguments) <= config().max_tool_argument_bytes:
        return call
    return too_long(call, str(call.arguments))


def too_long(call: ToolCall, arguments: str) -> ToolCall:
    """The call with the beginning of its arguments, and the error that names the limit."""
    error = f"The arguments are longer than {named('max_tool_argument_bytes')} bytes."
    return replace(call, arguments={"cut": cut(arguments, KEPT_ARGUMENTS)}, error=error)


def argument_size(arguments: Mapping[str, Any]) -> int:
    return json_size(dict(arguments))


def one_too_many(call: ToolCall) -> ToolResult:
    """The result of a call that is not run because its round has had its calls."""
    message = (
        f"This call was not run: a round may have {named('max_tool_calls')} calls. "
        "Make it again if you still need it."
    )
    return ToolResult(call, error_code="TOOL_CALL_LIMIT", error_message=message, seconds=0.0)


def own_result(event: ToolFinished) -> ToolFinished:
    """What a tool brought that the provider ran itself, kept short."""
    result = event.result
    payload = result.payload
    if json_size(payload) > MAX_RESULT:
        payload = {"text": cut(str(payload), MAX_RESULT), "cut": True}
    message = result.error_message and result.error_message[:MAX_ERROR]
    call = kept_short(result.call)
    return ToolFinished(replace(result, call=call, payload=payload, error_message=message))


def plausible(usage: Usage) -> Usage:
    """The counts without those that no answer can have."""
    counts = vars(usage).items()
    return Usage(**{name: n if n is not None and n <= MAX_TOKENS else None for name, n in counts})
