"""The values that walk through a run: the question, its rows, and how it ended in stored form."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, assert_never

from apps.agents.events import Terminal, TurnFailed, TurnFinished, TurnStopped
from apps.agents.messages import Message, Timing, Usage
from apps.conversations.models import Source, Turn
from apps.conversations.parts import Part


@dataclass(frozen=True)
class AgentSettings:
    """What an agent brings to an answer; its conversations are its own.

    `system_prompt` takes the place of the provider's (empty: the provider's stays) and is never
    stored. `tools` are the names of those it may use (None: all), `repositories` the names of the
    roots that it may search (empty: all). `home`, `folder` and `config` go to the provider as they
    are. `command` is `{name, stepIndex, totalSteps}`, kept with both turns, and `command_run` the
    id under which its steps hold the conversation (`leases`).
    """

    name: str
    system_prompt: str = ""
    tools: tuple[str, ...] | None = None
    repositories: tuple[str, ...] = ()
    home: Path | None = None
    folder: Path | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    command: Mapping[str, Any] | None = None
    command_run: str = ""


@dataclass(frozen=True)
class StartTurn:
    """A question, and who is to answer it. `repository` limits the tools to one root, by name.

    `flags` are merged into those kept with the conversation and handed to the provider; `title` is
    for a conversation that is made by this question. `replaces` is the answer that this is another
    try of: where it failed without a word it goes, with its question.
    """

    conversation_id: str
    message: str
    provider: str
    model: str
    inflight_id: str | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    source: str = Source.REST
    repository: str | None = None
    title: str | None = None
    agent: AgentSettings | None = None
    replaces: str = ""

    @property
    def command(self) -> Mapping[str, Any] | None:
        """The step of an agent's command that this is."""
        return self.agent.command if self.agent else None

    @property
    def agent_name(self) -> str:
        """Whose conversation it is; "" the chat's."""
        return self.agent.name if self.agent else ""

    @property
    def repositories(self) -> tuple[str, ...]:
        """The names of the only roots to search; empty: all. An agent's limit is never widened."""
        allowed = self.agent.repositories if self.agent else ()
        if self.repository and (not allowed or self.repository in allowed):
            return (self.repository,)
        return allowed


@dataclass(frozen=True)
class StartedTurn:
    """The rows of a run that holds its conversation's lock, and what was said before.

    `started_at` is the assistant turn's time, one millisecond after the user turn's; `replaced` is
    the answer that has gone, `owner_id` the user whose conversation it is.
    """

    turn_id: str
    user_turn_id: str
    inflight_id: str
    started_at: datetime
    flags: dict[str, Any]
    history: Sequence[Message]
    replaced: str = ""
    owner_id: Any = None


@dataclass(frozen=True)
class Outcome:
    """How a run ended, as the row and the wire have it."""

    status: str
    parts: Sequence[Part]
    error: dict[str, str] | None = None
    usage: dict[str, int] | None = None
    timing: dict[str, float] | None = None

    @classmethod
    def of(cls, event: Terminal, parts: Sequence[Part] = ()) -> "Outcome":
        error = None
        match event:
            case TurnFinished():
                status = Turn.Status.OK
            case TurnStopped():
                status = Turn.Status.STOPPED
            case TurnFailed(code=code, message=message):
                status = Turn.Status.FAILED
                error = {"code": code, "message": message}
            case _:
                assert_never(event)
        return cls(status, parts, error, usage_wire(event.usage), timing_wire(event.timing))


class Store(Protocol):
    """Where a run is kept: the database (`rows`) or, while the database is away, `memory`."""

    def start_turn(self, request: StartTurn, owner: str) -> StartedTurn: ...

    def keep_alive(self, turn_id: str, parts: Sequence[Part] | None) -> bool: ...

    def wanted(self, turn_id: str) -> bool: ...

    def name_thread(self, conversation_id: str, thread_id: str) -> None: ...

    def finish_turn(self, conversation_id: str, turn_id: str, outcome: Outcome) -> None: ...


def usage_wire(usage: Usage | None) -> dict[str, int] | None:
    """Token counts in wire names; a missing total is the sum of what went in and came out."""
    if usage is None:
        return None
    total = usage.total_tokens
    if total is None and usage.input_tokens is not None and usage.output_tokens is not None:
        total = usage.input_tokens + usage.output_tokens
    counts = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": total,
        "cachedInputTokens": usage.cached_input_tokens,
    }
    return {name: count for name, count in counts.items() if count is not None and count >= 0}


def timing_wire(timing: Timing | None) -> dict[str, float] | None:
    """Seconds and rate in wire names; only numbers above zero mean anything."""
    if timing is None:
        return None
    numbers = {
        "totalTimeSec": timing.total_seconds,
        "tokensPerSecond": timing.tokens_per_second,
    }
    return {
        name: round(number, 3)
        for name, number in numbers.items()
        if number is not None and math.isfinite(number) and number > 0
    }
