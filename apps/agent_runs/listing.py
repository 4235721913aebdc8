"""Agents and commands as JSON, for the API and MCP (docs/contract.md §6.2, §7)."""

from apps.agent_runs.definitions import Agent, Command
from apps.core.types import JSON

INVALID = "Invalid command file"


def agent_wire(agent: Agent) -> JSON:
    """`{name, description?, disabled?, warnings?}`. The problem of an agent is a warning."""
    warnings = [agent.problem] if agent.problem else list(agent.warnings)
    wire: JSON = {"name": agent.name}
    if agent.description:
        wire["description"] = agent.description
    if agent.problem:
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
