"""Agents and commands as JSON, for the API and MCP (docs/contract.md §6.2, §7)."""

from apps.agent_runs.definitions import Agent, Command
from apps.core.types import JSON

INVALID = "Invalid command file"
FOR_STAFF = "Only staff may run this agent: it can do more than search."


def agent_wire(agent: Agent) -> JSON:
    """`{name, description?, disabled?, warnings?}`. What prevents a run is a warning."""
    problem = agent.problem or (FOR_STAFF if agent.is_refused else "")
    warnings = [problem] if problem else list(agent.warnings)
    wire: JSON = {"name": agent.name}
    if agent.description:
        wire["description"] = agent.description
    if problem:
        wire["disabled"] = True
    return wire | ({"warnings": warnings} if warnings else {})


def command_wire(command: Command) -> JSON:
    """`{name, description, disabled, reason?}`."""
    if command.problem:
        return {
            "name": command.name,
            "description": INVALID,
            "disabled": True,
            "reason": command.problem,
        }
    return {"name": command.name, "description": command.description, "disabled": False}
