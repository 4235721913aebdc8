"""A Codex home of an agent's own, in the data folder: nothing is ever written beside its files."""

from pathlib import Path

from apps.agents.definitions.types import Agent
from codeinfo.conf import knobs


def home_of(agent: Agent) -> Path | None:
    """Where Codex keeps this agent's threads and login; None for another provider's agent."""
    if agent.provider != "codex":
        return None
    return knobs().data_dir / "codex" / "agents" / agent.name
