"""What happens while an answer is made: two closed unions, consumed with `match`.

A provider yields ModelEvents; the loop turns them into ChatEvents. Exactly one TurnFinished,
TurnFailed or TurnStopped ends every stream of ChatEvents.
"""

from dataclasses import dataclass
from typing import Literal

from apps.agents.messages import Timing, ToolCall, ToolResult, Usage


@dataclass(frozen=True)
class TextDelta:
    """More of the visible answer."""

    text: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True)
class ReasoningDelta:
    """More of the model's thinking."""

    text: str
    kind: Literal["reasoning"] = "reasoning"


@dataclass(frozen=True)
class ToolCallRequested:
    """The model wants a tool run, its arguments complete."""

    call: ToolCall
    kind: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True)
class Heartbeat:
    """The model is at work with nothing to show: it thinks unseen, or writes a call's arguments."""

    kind: Literal["heartbeat"] = "heartbeat"


@dataclass(frozen=True)
class ThreadNamed:
    """The provider keeps the conversation itself, under this id. Saying it again does no harm."""

    thread_id: str
    kind: Literal["thread"] = "thread"


@dataclass(frozen=True)
class Warned:
    """Passing trouble (`Reconnecting... 1/3`): shown while the answer is made, never stored."""

    message: str
    kind: Literal["warning"] = "warning"


@dataclass(frozen=True)
class UsageReported:
    usage: Usage
    kind: Literal["usage"] = "usage"


@dataclass(frozen=True)
class TurnStarted:
    kind: Literal["started"] = "started"


@dataclass(frozen=True)
class ToolStarted:
    call: ToolCall
    kind: Literal["tool_started"] = "tool_started"


@dataclass(frozen=True)
class ToolFinished:
    result: ToolResult
    kind: Literal["tool_finished"] = "tool_finished"


@dataclass(frozen=True)
class TurnFinished:
    usage: Usage | None
    timing: Timing
    kind: Literal["finished"] = "finished"


@dataclass(frozen=True)
class TurnFailed:
    """`code` is a wire code (PROVIDER_ERROR, PROVIDER_TIMEOUT, …); what was said so far is kept."""

    code: str
    message: str
    retryable: bool = True
    usage: Usage | None = None
    timing: Timing | None = None
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True)
class TurnStopped:
    timing: Timing | None = None
    usage: Usage | None = None
    kind: Literal["stopped"] = "stopped"


ModelEvent = (
    TextDelta
    | ReasoningDelta
    | ToolCallRequested
    | Heartbeat
    | UsageReported
    | ToolStarted
    | ToolFinished
    | ThreadNamed
    | Warned
)
Terminal = TurnFinished | TurnFailed | TurnStopped
ChatEvent = (
    TurnStarted
    | TextDelta
    | ReasoningDelta
    | ToolStarted
    | ToolFinished
    | ThreadNamed
    | Warned
    | Terminal
)
