"""What is said to a model and what it may answer with, independent of any provider's wire."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class ToolCall:
    """A model's wish to run a tool. `error` is set when its arguments could not be read."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class ToolResult:
    """What became of a call: the payload on success, else an error code and sentence."""

    call: ToolCall
    payload: Any = None
    error_code: str | None = None
    error_message: str | None = None
    seconds: float | None = None

    @property
    def ok(self) -> bool:
        return self.error_message is None


@dataclass(frozen=True)
class Message:
    """One message of a conversation. A tool message answers one earlier call."""

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_result: ToolResult | None = None


@dataclass(frozen=True)
class Usage:
    """Token counts as a provider reports them; all non-negative."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cached_input_tokens: int | None = None


@dataclass(frozen=True)
class Timing:
    """Wall seconds of a whole answer and, where tokens were counted, its rate."""

    total_seconds: float
    tokens_per_second: float | None = None
