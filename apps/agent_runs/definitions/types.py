"""Values of an agent definition."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apps.agents.providers.base import Rights
from apps.agents.providers.codex.sandbox import is_decided
from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound
from apps.core.principal import current

CODEX = "codex"
# The provider of an agent that takes the first available one.
AUTO = "auto"
# Codex's settings of the model begin so: model_reasoning_effort, model_provider, …
MODEL = "model"


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
    project_docs: whether the AGENTS.md of its working folder is added to its prompt.
    for_users: True if its folder lends its rights to users who are not staff.
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
    project_docs: bool = False
    for_users: bool = False
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
    def home(self) -> Path | None:
        """The folder of its Codex threads and login; None for other providers."""
        if self.provider != CODEX:
            return None
        return config().data_dir.absolute() / "codex" / "agents" / self.name

    @property
    def servers(self) -> tuple[str, ...]:
        """Names of the further MCP servers in its Codex configuration."""
        return tuple(self.config.get("mcp_servers", ()))

    @property
    def only_searches(self) -> bool:
        """Whether it can do nothing but search. Settings of the model do not count."""
        settings = (k for k in self.config if not (k.startswith(MODEL) or is_decided(k)))
        return not self.may_be_codex or not (self.rights.any or any(settings))

    @property
    def is_refused(self) -> bool:
        """Whether the current principal may not run it."""
        return self.is_for_staff and not current().is_staff

    @property
    def is_for_staff(self) -> bool:
        """Whether only staff may run it: without a sandbox, nothing limits what it reads."""
        return not self.only_searches and (self.rights.unlimited or not self.for_users)

    @property
    def summary(self) -> str:
        """The first line of the description that is not a heading."""
        lines = (line.strip() for line in self.description.splitlines())
        return next((line for line in lines if line and not line.startswith("#")), "")

    def usable(self) -> "Agent":
        """Return self.

        Raises InvalidInput: AGENT_INVALID if it has a problem, FORBIDDEN if it is for staff and the
        current principal is not.
        """
        if self.problem:
            raise InvalidInput(f"Agent {self.name!r}: {self.problem}", code="AGENT_INVALID")
        if self.is_refused:
            raise InvalidInput(f"Agent {self.name!r} is for staff.", code="FORBIDDEN")
        return self

    def command(self, name: str) -> Command:
        """A command that can be run.

        Raises NotFound COMMAND_NOT_FOUND, or InvalidInput COMMAND_INVALID with the reason.
        """
        command = next((one for one in self.commands if one.name == name), None)
        if command is None:
            raise NotFound("Command not found", code="COMMAND_NOT_FOUND")
        if command.problem:
            raise InvalidInput(f"Invalid command: {command.problem}", code="COMMAND_INVALID")
        return command
