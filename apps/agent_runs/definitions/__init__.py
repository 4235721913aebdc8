"""Agent definitions: folders, read again on each call (docs/agents.md).

    <CODEINFO_AGENTS_HOME>/<name>/config.toml          provider, model, tools and rights
                                 /description.md       Markdown, for people
                                 /system_prompt.txt    the system prompt
                                 /commands/<name>.json a command: instructions in steps

Nothing is written there. An invalid folder or command is listed with its problem.
"""

from apps.agent_runs.definitions.folders import agent_named, all_agents, project_docs, with_home
from apps.agent_runs.definitions.types import AUTO, CODEX, Agent, Command

__all__ = [
    "AUTO",
    "CODEX",
    "Agent",
    "Command",
    "agent_named",
    "all_agents",
    "project_docs",
    "with_home",
]
