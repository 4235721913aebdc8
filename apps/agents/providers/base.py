"""The Provider protocol: list models and stream one round of an answer."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from apps.agents.events import ModelEvent
from apps.agents.messages import Message
from apps.index.types import Area
from apps.tools.tool import Tool


@dataclass(frozen=True)
class Availability:
    """Whether a provider can be used now (contract.md §2.1).

    available: requests can be answered.
    tools_available: its tools work.
    reason: a sentence that names what is missing, for the user.
    """

    available: bool
    tools_available: bool = True
    reason: str | None = None


@dataclass(frozen=True)
class Model:
    """One model of a provider.

    key: the id that requests name.
    display_name: the name that pages show.
    type: "llm", "codex", "search" or the server's own type.
    efforts: the reasoning efforts that the model accepts; empty if there is no choice.
    """

    key: str
    display_name: str
    type: str = "llm"
    efforts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rights:
    """What an answer may do beyond searching, on this machine. Only Codex can do any of it.

    write: change files of the working folder.
    run: run programs in the working folder.
    network: these programs reach the network, and the model may search the web.
    readable: further folders that these programs read.
    unlimited: the programs have all rights of the user who runs codeinfo.
    """

    write: bool = False
    run: bool = False
    network: bool = False
    readable: tuple[Path, ...] = ()
    unlimited: bool = False

    @property
    def any(self) -> bool:
        return self.write or self.run or self.network


@dataclass(frozen=True)
class ModelRequest:
    """The input of one round.

    model: a `Model.key`.
    messages: the conversation, oldest first. A system message comes first in every request; a
        provider that stores the conversation itself sends it only when a thread begins.
    tools: the tools that the model may call.
    flags: provider options from the request body (contract.md §2.2).
    conversation_id: identifies the conversation to the stream scheduler.

    The other fields are for providers that run tools themselves:

    repositories: the only repositories that may be searched; empty: all.
    areas: the only files that may be searched; empty: all.
    home: the provider's home folder for an agent; None: the chat's.
    folder: the working folder; None: a new, empty one for this round.
    rights: what the round may do in it.
    config: settings of an agent for the provider. The rights come before them.
    """

    model: str
    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    flags: dict[str, Any] = field(default_factory=dict)
    repositories: tuple[str, ...] = ()
    areas: tuple[Area, ...] = ()
    home: Path | None = None
    folder: Path | None = None
    rights: Rights = Rights()
    config: Mapping[str, Any] = field(default_factory=dict)
    conversation_id: str = ""


class Provider(Protocol):
    """A source of models. Its methods run in the event loop, concurrently.

    `models` and `stream` raise Unavailable, with `retryable` set, and InvalidInput.
    """

    @property
    def id(self) -> str:
        """Called when a provider is looked up. Returns its wire name ("lmstudio")."""

    @property
    def label(self) -> str:
        """Called when a page names the provider. Returns its display name ("LM Studio")."""

    @property
    def system_prompt(self) -> str:
        """Called once for each turn, unless an agent has a prompt. Returns the first message."""

    async def origin(self) -> str:
        """Called when a turn or a list is logged. Returns the scheme, host and port of its server;
        "" if it has none."""

    async def availability(self) -> Availability:
        """Called when providers are listed or preselected. Never raises; returns in seconds."""

    async def models(self) -> Sequence[Model]:
        """Called when a page or a client lists models. Returns at least one, the preferred one
        first. Raises Unavailable."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Called for each round of a turn. Closing the generator must stop the generation."""
