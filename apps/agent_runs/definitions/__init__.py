"""Agents as folders: found, read and checked anew on each call (docs/agents.md).

    <CODEINFO_AGENTS_HOME>/<name>/config.toml          who answers, with which tools and rights
                                 /description.md       Markdown, for people
                                 /system_prompt.txt    what the model is told
                                 /commands/<name>.json instructions kept under a name

Nothing is ever written there. A folder or command that cannot be used is listed with what is wrong.
"""

from apps.agent_runs.definitions.folders import agent_named, all_agents
from apps.agent_runs.definitions.homes import home_of
from apps.agent_runs.definitions.types import Agent, Command, Rights

__all__ = ["Agent", "Command", "Rights", "agent_named", "all_agents", "home_of"]
