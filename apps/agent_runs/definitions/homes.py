"""The Codex home of each agent, in the data folder."""

from dataclasses import replace
from pathlib import Path

from apps.agent_runs.definitions.types import CODEX, Agent
from apps.agents.providers.codex.home import prepare
from apps.core.config import config


def home_of(agent: Agent) -> Path | None:
    """The folder of this agent's Codex threads and login; None for other providers."""
    if agent.provider != CODEX:
        return None
    return config().data_dir.absolute() / "codex" / "agents" / agent.name


def with_home(agent: Agent) -> Agent:
    """Prepare the agent's Codex home, with a copy of the chat's login if it has none.

    Returns the agent, with a warning if that failed.
    """
    home = home_of(agent)
    if home is None:
        return agent
    try:
        prepare(home)
    except OSError as error:
        warning = f"Its Codex home {home} cannot be made ready: {error.strerror}."
        return replace(agent, warnings=(*agent.warnings, warning))
    return agent
