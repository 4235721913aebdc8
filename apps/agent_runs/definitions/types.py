"""Values of an agent definition."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.core.errors import InvalidInput, NotFound

CODEX = "codex"
# The provider of an agent that takes the first available one.
AUTO = "auto"


@dataclass(frozen=True)
class Rights:
    """Rights beyond reading; all False unless `config.toml` grants them.

    They take effect with Codex only: the tools of other providers only read.

    write: change files of the working folder.
    run: run programs in the working folder.
    network: reach the network.
    """

    write: bool = False
    run: bool = False
    network: bool = False

    @property
    def any(self) -> bool:
        return self.write or self.run or self.network


@dataclass(frozen=True)
class Command:
    """A command of an agent.

    steps: one instruction per step.
    problem: why it cannot be run; "" if it can.
    """

    name: str
    description: str = ""
    steps: tuple[str, ...] = ()
    problem: str = ""

    @property
    def title(self) -> str:
        """The name with spaces for underscores."""
        return self.name.replace("_", " ")


@dataclass(frozen=True)
class Agent:
    """An agent definition.

    name: the name of its folder.
    provider: AUTO: the first available one answers.
    model: "": the provider's first.
    tools: names of the tools it may call; None: all.
    repositories: ids of the repositories it may search; empty: all.
    config: Codex configuration by dotted key.
    description: Markdown.
    system_prompt: "": the provider's.
    warnings: settings of the folder that have no effect.
    problem: why it cannot be run; "" if it can.
    """

    name: str
    provider: str = CODEX
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
    def may_be_codex(self) -> bool:
        """Whether Codex may answer for it, with its rights and its Codex configuration."""
        return self.provider in (CODEX, AUTO)

    @property
    def servers(self) -> tuple[str, ...]:
        """Names of the further MCP servers in its Codex configuration."""
        start = "mcp_servers."
        return tuple(k.removeprefix(start) for k in self.config if k.startswith(start))

    @property
    def summary(self) -> str:
        """The first line of the description that is not a heading."""
        lines = (line.strip() for line in self.description.splitlines())
        return next((line for line in lines if line and not line.startswith("#")), "")

    def usable(self) -> "Agent":
        """Return self. Raises InvalidInput AGENT_INVALID if it has a problem."""
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
