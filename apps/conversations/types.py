"""The values of a run: its request, its rows, its outcome; and the protocol of its store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, assert_never

from apps.agents.events import Terminal, TurnFailed, TurnFinished, TurnStopped
from apps.agents.messages import Message, Timing, Usage
from apps.agents.providers.base import Rights
from apps.conversations.models import Conversation, Source, Turn
from apps.conversations.parts import Part, content
from apps.index.types import Area
from apps.retrieval.query import repositories_of


@dataclass(frozen=True)
class AgentSettings:
    """The settings of an agent for one run. Only this agent may continue its conversations.

    name: the agent's name, stored as `Conversation.agent_name`.
    system_prompt: replaces the provider's if not empty; never stored.
    tools: names of the tools it may call; None: all.
    repositories: ids of the repositories it may search; empty: all.
    home, folder, rights, config: passed to the provider unchanged.
    command: `{name, stepIndex, totalSteps}` of a command's step, stored with both turns.
    command_run: id of the CommandRun that locks the conversation for all steps (`leases`).
    """

    name: str
    system_prompt: str = ""
    tools: tuple[str, ...] | None = None
    repositories: tuple[str, ...] = ()
    home: Path | None = None
    folder: Path | None = None
    rights: Rights = Rights()
    config: Mapping[str, Any] = field(default_factory=dict)
    command: Mapping[str, Any] | None = None
    command_run: str = ""


@dataclass(frozen=True)
class StartTurn:
    """A request to answer a message.

    conversation_id: created with the first message.
    message: the text of the user turn.
    provider, model: who answers.
    inflight_id: the client's id of the run; None: a new UUID4.
    flags: merged into the flags of the conversation, and passed to the provider.
    source: stored with the conversation and both turns.
    areas: the only files to search; empty: all that the agent may search; None: as the
        conversation is limited.
    title: of a new conversation; None: taken from the message.
    agent: None for the chat.
    system_prompt: replaces the provider's if not empty. An agent's own comes first.
    parent: id of the turn that the message follows; "": none, so it is another first message;
        None: the last one of the branch. If it is a question, it gets another answer, and `message`
        is its text or "".
    """

    conversation_id: str
    message: str
    provider: str
    model: str
    inflight_id: str | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    source: str = Source.REST
    areas: tuple[Area, ...] | None = None
    title: str | None = None
    agent: AgentSettings | None = None
    system_prompt: str = ""
    parent: str | None = None

    @property
    def command(self) -> Mapping[str, Any] | None:
        """`{name, stepIndex, totalSteps}` if this is a step of a command."""
        return self.agent.command if self.agent else None

    @property
    def agent_name(self) -> str:
        """The agent that owns the conversation; "" for the chat."""
        return self.agent.name if self.agent else ""

    @property
    def repositories(self) -> tuple[str, ...]:
        """Ids of the only repositories to search; empty: all. Never exceeds the agent's limit."""
        allowed = self.agent.repositories if self.agent else ()
        chosen = repositories_of(self.areas or ())
        if not allowed:
            return chosen
        return tuple(repository for repository in chosen if repository in allowed) or allowed


@dataclass(frozen=True)
class StartedTurn:
    """The rows of a run that holds the run lock of its conversation.

    conversation: its flags are merged, with the scope of a question that is asked again.
    history: the earlier messages of the branch, oldest first.
    forks: the run follows another turn than the last of the branch that was followed.
    """

    question: Turn
    answer: Turn
    conversation: Conversation
    history: Sequence[Message]
    forks: bool = False

    @property
    def message(self) -> str:
        return content(self.question.parts)


@dataclass(frozen=True)
class Outcome:
    """The end of a run, as stored and sent.

    status: a final `Turn.Status`.
    parts: all parts of the answer (`parts.py`).
    error: `{code, message}` of a failed run.
    usage: token counts (`usage_wire`); timing: seconds and tokens per second (`timing_wire`).
    """

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
    """Stores a run that has started: the database (`rows`) or, while it is away, `memory`."""

    def keep_alive(self, turn_id: str, parts: Sequence[Part] | None) -> bool:
        """Called after new events and at each heartbeat: save the parts so far, if any.

        Returns False if the run must stop.
        """
        ...

    def may_continue(self, turn_id: str) -> bool:
        """Called between heartbeats. Returns False if the run must stop."""
        ...

    def name_thread(self, conversation_id: str, turn_id: str, thread_id: str) -> None:
        """Called when the provider names its thread of the branch."""
        ...

    def finish_turn(self, conversation_id: str, turn_id: str, outcome: Outcome) -> None:
        """Called once, when a run has ended: save its end and release the run lock."""
        ...


def usage_wire(usage: Usage | None) -> dict[str, int] | None:
    """Token counts by wire name (contract.md §1.1)."""
    if usage is None:
        return None
    counts = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.total_tokens,
        "cachedInputTokens": usage.cached_input_tokens,
    }
    return {name: count for name, count in counts.items() if count is not None}


def timing_wire(timing: Timing | None) -> dict[str, float] | None:
    """Seconds and tokens per second by wire name (contract.md §1.1); only values above 0."""
    if timing is None:
        return None
    numbers = {
        "totalTimeSec": timing.total_seconds,
        "tokensPerSecond": timing.tokens_per_second,
    }
    return {name: number for name, number in numbers.items() if number}
