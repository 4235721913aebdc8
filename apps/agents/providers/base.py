"""What a provider is: something that lists its models and streams one round of an answer."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
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
    """One model that a provider offers (`type` is "llm", "codex" or "search")."""

    key: str
    display_name: str
    type: str = "llm"


@dataclass(frozen=True)
class ModelRequest:
    """One round: the conversation so far, oldest first, and the tools the model may call."""

    model: str
    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    flags: dict[str, Any] = field(default_factory=dict)


class Provider(Protocol):
    """Errors raised by `models` and `stream`: Unavailable (retryable or not), InvalidInput."""

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
