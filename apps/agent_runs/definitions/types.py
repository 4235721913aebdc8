"""What an agent is, once its folder has been read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.core.errors import InvalidInput, NotFound


@dataclass(frozen=True)
class Rights:
    """What an agent may do beside reading: change files of its working folder, run programs there,
    reach the network. Nothing of it unless its `config.toml` says so, and with Codex only: the
    tools that other providers may call only read."""

    write: bool = False
    run: bool = False
    network: bool = False

    @property
    def any(self) -> bool:
        return self.write or self.run or self.network


@dataclass(frozen=True)
class Command:
    """Instructions kept under a name, one for each step. `problem`: why it cannot be run."""

    name: str
    description: str = ""
    steps: tuple[str, ...] = ()
    problem: str = ""

    @property
    def title(self) -> str:
        """The name as people read it."""
        return self.name.replace("_", " ")


@dataclass(frozen=True)
class Agent:
    """One agent. `tools` None means every tool, no `repositories` every repository.

    `config` is what its `config.toml` holds for Codex; `problem` says why it cannot be run.
    """

    name: str
    provider: str = "codex"
    model: str = ""
    tools: tuple[str, ...] | None = None
    repositories: tuple[str, ...] = ()
    rights: Rights = Rights()
    config: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    system_prompt: str = ""
    commands: tuple[Command, ...] = ()
    warnings: tuple[str, ...] = ()
    problem: str = ""

    @property
    def servers(self) -> tuple[str, ...]:
        """The MCP servers that Codex is given beside ours, by name."""
        start = "mcp_servers."
        return tuple(k.removeprefix(start) for k in self.config if k.startswith(start))

    @property
    def summary(self) -> str:
        """The description's first line of prose, without Markdown's marks."""
        lines = (line.strip() for line in self.description.splitlines())
        return next((line for line in lines if line and not line.startswith("#")), "")

    def usable(self) -> "Agent":
        """Itself. Raises InvalidInput AGENT_INVALID where its folder cannot be used."""
        if self.problem:
            raise InvalidInput(f"Agent {self.name!r}: {self.problem}", code="AGENT_INVALID")
        return self

    def command(self, name: str) -> Command:
        """A command that can be run.

        Raises NotFound COMMAND_NOT_FOUND, or InvalidInput COMMAND_INVALID with the reason.
        """
        found = next((one for one in self.commands if one.name == name), None)
        if found is None:
            raise NotFound("Command not found", code="COMMAND_NOT_FOUND")
        if found.problem:
            raise InvalidInput(f"Invalid command: {found.problem}", code="COMMAND_INVALID")
        return found
