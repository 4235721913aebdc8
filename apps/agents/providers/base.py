"""What a provider is: something that lists its models and streams one round of an answer."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from apps.agents.events import ModelEvent
from apps.agents.messages import Message
from apps.retrieval.tools import Tool


@dataclass(frozen=True)
class Availability:
    """Whether a provider can be used now; `reason` says in a sentence what is missing."""

    available: bool
    tools_available: bool = True
    reason: str | None = None


@dataclass(frozen=True)
class Model:
    """One model that a provider offers (`type` is "llm", "codex" or "search").

    `efforts` are the degrees of reasoning that it can be asked for, where there is a choice.
    """

    key: str
    display_name: str
    type: str = "llm"
    efforts: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelRequest:
    """One round: the conversation so far, oldest first, and the tools the model may call.

    A system message, where there is one, comes first and with every request; a provider that keeps
    the conversation itself says it when a thread begins. The rest is for providers whose tools are
    not ours to run: `repositories` names the only roots that may be searched (empty: all), `home`
    is a home of an agent's own, `folder` the working folder, `config` goes to it as it stands.
    """

    model: str
    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    flags: dict[str, Any] = field(default_factory=dict)
    repositories: tuple[str, ...] = ()
    home: Path | None = None
    folder: Path | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    conversation_id: str = ""


class Provider(Protocol):
    """A source of models. Its methods run in the event loop, several calls at once.

    `models` and `stream` raise Unavailable (retryable or not) and InvalidInput.
    """

    @property
    def id(self) -> str:
        """The wire name ("lmstudio")."""

    @property
    def label(self) -> str:
        """The name that pages show ("LM Studio")."""

    @property
    def system_prompt(self) -> str:
        """Called once a turn, for its first message, unless an agent brings a prompt."""

    async def availability(self) -> Availability:
        """Called when the providers are listed. Never raises; returns within seconds."""

    async def models(self) -> Sequence[Model]:
        """Called when a page or a client lists the models. Returns the best model first."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Called once for each round of a turn. Closing the generator stops the generation."""
