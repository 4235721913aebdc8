"""Messages, tool calls and results, independent of any provider's wire format."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from apps.core.types import JSON

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class ToolCall:
    """A model's request to run a tool.

    id: unique within one answer.
    arguments: the parsed JSON object.
    error: what is wrong with the arguments, if they could not be parsed.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class ToolResult:
    """The outcome of a call.

    payload: JSON, on success.
    error_code, error_message: a wire code and a sentence, on failure.
    error_details: further fields of the error; the response of a tool that another program runs.
    seconds: wall time of the call.
    """

    call: ToolCall
    payload: Any = None
    error_code: str | None = None
    error_message: str | None = None
    error_details: Mapping[str, Any] | None = None
    seconds: float | None = None

    @property
    def ok(self) -> bool:
        return self.error_message is None

    @property
    def error(self) -> JSON:
        """The wire's `errorTrimmed`."""
        return {"code": self.error_code, "message": self.error_message}

    @property
    def full_error(self) -> JSON:
        """The wire's `errorFull`."""
        details = {"details": dict(self.error_details)} if self.error_details else {}
        return self.error | details


@dataclass(frozen=True)
class Message:
    """One message of a conversation.

    text: the content; of a tool message, the quoted result (`quoting.quote_result`).
    tool_calls: of an assistant message, the calls it makes.
    tool_result: of a tool message, the result of one earlier call.
    """

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_result: ToolResult | None = None


@dataclass(frozen=True)
class Usage:
    """Token counts as a provider reports them: non-negative, None if not reported.

    The names follow OpenAI's `usage` object. `cached_input_tokens` is part of `input_tokens`.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cached_input_tokens: int | None = None


@dataclass(frozen=True)
class Timing:
    """Duration of an answer.

    total_seconds: wall time, tools included.
    tokens_per_second: output tokens over the time in which the model wrote; None without counts.
    """

    total_seconds: float
    tokens_per_second: float | None = None
