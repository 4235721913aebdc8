"""Limits of one answer: text, reasoning, tool calls and time.

An answer that exceeds a limit fails, and its text so far is stored. Calls are the exception: a
call above the limit, or with arguments that are too long, gets an error result that the model
reads.
"""

import time
from dataclasses import replace
from typing import TypeVar

from apps.agents.events import ReasoningDelta, TextDelta, ToolFinished, ToolStarted
from apps.agents.messages import ToolCall, ToolResult, Usage
from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.http.limits import MAX_NAME, Budget, cut, json_size, past

# Of one answer, in all its rounds.
MAX_ANSWER_BYTES = MAX_REASONING_BYTES = 1_000_000
# Calls of one round that are run, and bytes of the arguments of one call.
MAX_TOOL_CALLS = 16
MAX_TOOL_ARGUMENT_BYTES = 32_000
# Characters that remain of arguments that are too long.
TRUNCATED_ARGUMENTS_CHARS = 500
# Calls of one round that are recorded: 100 more, which get an error result. Calls after them are
# dropped: thousands of errors would fill the next request.
MAX_RECORDED_CALLS = MAX_TOOL_CALLS + 100
# Results of tools that the provider runs itself: bytes of the payload, characters of the error.
MAX_RESULT = 256_000
MAX_ERROR = 2_000
MAX_WARNINGS = 100
# Larger counts are invalid; a database column would overflow.
MAX_TOKENS = 10**12

DeltaT = TypeVar("DeltaT", TextDelta, ReasoningDelta)


def max_provider_calls(max_rounds: int) -> int:
    """Return how many tools a provider may call itself in an answer, and how often it may ask its
    model: as often as all rounds together may call tools."""
    return MAX_TOOL_CALLS * max(max_rounds, 1)


def past_time() -> Unavailable:
    """Return the error of an answer that has used up its time."""
    return past(f"CODEINFO_MAX_ANSWER_SECONDS ({config().max_answer_seconds:g})")


class AnswerLimits:
    """The budgets of one answer: bytes of its text and its reasoning, tool calls, and time, which
    starts with the object."""

    def __init__(self, max_rounds: int) -> None:
        self.text = Budget(MAX_ANSWER_BYTES, "text")
        self.reasoning = Budget(MAX_REASONING_BYTES, "reasoning")
        self._until = time.monotonic() + config().max_answer_seconds
        self._provider_calls = self._provider_calls_left = max_provider_calls(max_rounds)
        self._warnings_left = MAX_WARNINGS

    def seconds_left(self) -> float:
        """Return the time left. Raises Unavailable (PROVIDER_ERROR) when it is used up."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise past_time()
        return left

    def admit_warning(self) -> bool:
        """Return True for the first MAX_WARNINGS warnings."""
        self._warnings_left -= 1
        return self._warnings_left >= 0

    def admit_provider_call(self, event: ToolStarted) -> ToolStarted:
        """Count and truncate a call that the provider runs itself, outside rounds.

        Raises Unavailable (PROVIDER_ERROR) for more calls than all rounds together may have.
        """
        if self._provider_calls_left <= 0:
            raise past(f"{self._provider_calls} tool calls")
        self._provider_calls_left -= 1
        return ToolStarted(truncate_call(event.call))


def fit_delta(delta: DeltaT, budget: Budget) -> DeltaT | None:
    """Cut a delta to what is left of the budget; None if nothing is left."""
    text = budget.take(delta.text)
    return replace(delta, text=text) if text else None


def truncate_call(call: ToolCall) -> ToolCall:
    """Limit a call's name, id and arguments to lengths that can be stored and sent back.

    Arguments that are too long are cut, and the call's `error` names the limit.
    """
    call = replace(call, id=call.id[:MAX_NAME], name=call.name[:MAX_NAME])
    if json_size(dict(call.arguments)) <= MAX_TOOL_ARGUMENT_BYTES:
        return call
    return reject_long_arguments(call, str(call.arguments))


def reject_long_arguments(call: ToolCall, arguments: str) -> ToolCall:
    """Replace a call's arguments by their beginning, with an error that names the limit."""
    error = f"The arguments are longer than {MAX_TOOL_ARGUMENT_BYTES} bytes."
    return replace(call, arguments={"cut": cut(arguments, TRUNCATED_ARGUMENTS_CHARS)}, error=error)


def call_limit_result(call: ToolCall) -> ToolResult:
    """Return the error result of a call above the limit of its round."""
    message = (
        f"This call was not run: a round may have {MAX_TOOL_CALLS} calls. "
        "Make it again if you still need it."
    )
    return ToolResult(call, error_code="TOOL_CALL_LIMIT", error_message=message, seconds=0.0)


def truncate_result(event: ToolFinished) -> ToolFinished:
    """Truncate the result of a tool that the provider ran itself."""
    result = event.result
    payload = result.payload
    if json_size(payload) > MAX_RESULT:
        payload = {"text": cut(str(payload), MAX_RESULT), "cut": True}
    message = result.error_message and result.error_message[:MAX_ERROR]
    call = truncate_call(result.call)
    return ToolFinished(replace(result, call=call, payload=payload, error_message=message))


def drop_implausible(usage: Usage) -> Usage:
    """Set negative counts and counts above MAX_TOKENS to None."""
    counts = vars(usage).items()
    return Usage(**{name: n for name, n in counts if n is not None and 0 <= n <= MAX_TOKENS})
