"""Events of an answer: two closed unions, consumed with `match`.

A provider yields ModelEvents; the loop turns them into ChatEvents. Exactly one TurnFinished,
TurnFailed or TurnStopped ends every stream of ChatEvents. `apps.conversations` gives them the wire
names of contract.md §2.4.
"""

from dataclasses import dataclass

from apps.agents.messages import Timing, ToolCall, ToolResult, Usage


@dataclass(frozen=True)
class TextDelta:
    """A fragment of the visible answer, in order."""

    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    """A fragment of the model's reasoning, in order (contract.md §3)."""

    text: str


@dataclass(frozen=True)
class TextReclassified:
    """The text of the round so far was reasoning: the model wrote only the marker of its end."""


@dataclass(frozen=True)
class ToolCallRequested:
    """A tool call with complete arguments, for the loop to run after the round."""

    call: ToolCall


@dataclass(frozen=True)
class Heartbeat:
    """The model works but has no output yet: hidden reasoning, or a call's arguments.

    Resets the idle timeout.
    """


@dataclass(frozen=True)
class ThreadNamed:
    """The id under which the provider itself stores the conversation. May be repeated."""

    thread_id: str


@dataclass(frozen=True)
class Warned:
    """A temporary problem (`Reconnecting... 1/3`). Shown while the answer streams, never stored."""

    message: str


@dataclass(frozen=True)
class UsageReported:
    """Token counts of the round so far. A later report replaces an earlier one."""

    usage: Usage


@dataclass(frozen=True)
class TurnStarted:
    """The first event of every answer."""


@dataclass(frozen=True)
class ToolStarted:
    """A tool starts: run by the loop, or by a provider that runs its own tools."""

    call: ToolCall


@dataclass(frozen=True)
class ToolFinished:
    """A tool has ended, with its payload or its error. Follows the ToolStarted of the same call."""

    result: ToolResult


@dataclass(frozen=True)
class TurnFinished:
    """The answer is complete. `usage` is None if the provider reported no counts."""

    usage: Usage | None
    timing: Timing


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


@dataclass(frozen=True)
class TurnStopped:
    """The user stopped the answer. The text so far is stored."""

    timing: Timing | None = None
    usage: Usage | None = None


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
