"""A Codex home of an agent's own, in the data folder: nothing is ever written beside its files."""

from dataclasses import replace
from pathlib import Path

from apps.agent_runs.definitions.types import Agent
from apps.agents.providers.codex.home import prepare
from apps.core.config import config


def home_of(agent: Agent) -> Path | None:
    """Where Codex keeps this agent's threads and login; None for another provider's agent."""
    if agent.provider != "codex":
        return None
    return config().data_dir.absolute() / "codex" / "agents" / agent.name


def with_home(agent: Agent) -> Agent:
    """The agent with its home made ready, the chat's login copied into it where it has none; with
    a warning where that failed, which keeps nobody from looking at it."""
    home = home_of(agent)
    if home is None:
        return agent
    try:
        prepare(home)
    except OSError as error:
        warning = f"Its Codex home {home} cannot be made ready: {error.strerror}."
        return replace(agent, warnings=(*agent.warnings, warning))
    return agent
