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
    """Errors raised by `models` and `stream`: Unavailable (retryable or not), InvalidInput.

    A provider whose models must be told something else than every other's may have a
    `system_prompt: str`, which the runner sends in place of SYSTEM_PROMPT.
    """

    @property
    def id(self) -> str: ...

    @property
    def label(self) -> str: ...

    async def availability(self) -> Availability:
        """Never raises; answers within a second or two."""

    async def models(self) -> Sequence[Model]:
        """The models to choose from, best first."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """One round. Closing the generator must stop the generation on the server."""
