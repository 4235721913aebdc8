"""Events of an answer: two closed unions, consumed with `match`.

A provider yields ModelEvents; the loop turns them into ChatEvents. Exactly one TurnFinished,
TurnFailed or TurnStopped ends every stream of ChatEvents. `kind` is the discriminator for code that
serialises events; the wire names of contract.md §2.4 are mapped in `apps.conversations`.
"""

from dataclasses import dataclass
from typing import Literal

from apps.agents.messages import Timing, ToolCall, ToolResult, Usage


@dataclass(frozen=True)
class TextDelta:
    """A fragment of the visible answer, in order."""

    text: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True)
class ReasoningDelta:
    """A fragment of the model's reasoning, in order (contract.md §3)."""

    text: str
    kind: Literal["reasoning"] = "reasoning"


@dataclass(frozen=True)
class TextReclassified:
    """The text of the round so far was reasoning: the model wrote only the marker of its end."""

    kind: Literal["reclassified"] = "reclassified"


@dataclass(frozen=True)
class ToolCallRequested:
    """A tool call with complete arguments, for the loop to run after the round."""

    call: ToolCall
    kind: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True)
class Heartbeat:
    """The model works but has no output yet: hidden reasoning, or a call's arguments.

    Resets the idle timeout.
    """

    kind: Literal["heartbeat"] = "heartbeat"


@dataclass(frozen=True)
class ThreadNamed:
    """The id under which the provider itself stores the conversation. May be repeated."""

    thread_id: str
    kind: Literal["thread"] = "thread"


@dataclass(frozen=True)
class Warned:
    """A temporary problem (`Reconnecting... 1/3`). Shown while the answer streams, never stored."""

    message: str
    kind: Literal["warning"] = "warning"


@dataclass(frozen=True)
class UsageReported:
    """Token counts of the round so far. A later report replaces an earlier one."""

    usage: Usage
    kind: Literal["usage"] = "usage"


@dataclass(frozen=True)
class TurnStarted:
    """The first event of every answer."""

    kind: Literal["started"] = "started"


@dataclass(frozen=True)
class ToolStarted:
    """A tool starts: run by the loop, or by a provider that runs its own tools."""

    call: ToolCall
    kind: Literal["tool_started"] = "tool_started"


@dataclass(frozen=True)
class ToolFinished:
    """A tool has ended, with its payload or its error. Follows the ToolStarted of the same call."""

    result: ToolResult
    kind: Literal["tool_finished"] = "tool_finished"


@dataclass(frozen=True)
class TurnFinished:
    """The answer is complete. `usage` is None if the provider reported no counts."""

    usage: Usage | None
    timing: Timing
    kind: Literal["finished"] = "finished"


@dataclass(frozen=True)
class TurnFailed:
    """The answer failed. The text so far is stored.

    code: a wire code (PROVIDER_ERROR, PROVIDER_TIMEOUT, …; contract.md §2.4).
    message: a sentence for the user.
    retryable: whether the same request may succeed later.
    usage, timing: what was counted until the failure.
    """

    code: str
    message: str
    retryable: bool = True
    usage: Usage | None = None
    timing: Timing | None = None
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True)
class TurnStopped:
    """The user stopped the answer. The text so far is stored."""

    timing: Timing | None = None
    usage: Usage | None = None
    kind: Literal["stopped"] = "stopped"


ModelEvent = (
    TextDelta
    | ReasoningDelta
    | TextReclassified
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
    | TextReclassified
    | ToolStarted
    | ToolFinished
    | ThreadNamed
    | Warned
    | Terminal
)
