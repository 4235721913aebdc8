"""Agents and their commands as the wire has them, here and over MCP (docs/contract.md §6.2, §7)."""

from apps.agent_runs.definitions import Agent, Command
from apps.core.types import JSON

INVALID = "Invalid command file"


def agent_wire(agent: Agent) -> JSON:
    """`{name, description?, disabled?, warnings?}`; a broken folder's reason is a warning."""
    warnings = [agent.problem] if agent.problem else list(agent.warnings)
    wire: JSON = {"name": agent.name}
    if agent.description:
        wire["description"] = agent.description
    if agent.problem:
        wire["disabled"] = True
    return wire | ({"warnings": warnings} if warnings else {})


def command_wire(command: Command) -> JSON:
    """`{name, description, disabled}`, and the `reason` of one that cannot be run."""
    if command.problem:
        return {
            "name": command.name,
            "description": INVALID,
            "disabled": True,
            "reason": command.problem,
        }
    return {"name": command.name, "description": command.description, "disabled": False}
