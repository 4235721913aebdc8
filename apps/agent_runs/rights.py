"""The rights of an agent as text, for the user who runs it."""

from collections.abc import Iterator
from dataclasses import dataclass

from apps.agent_runs.definitions import Agent
from apps.agents.providers.base import Rights
from apps.tools.tools import TOOLS


@dataclass(frozen=True)
class Fact:
    """One line of the rights.

    what: the kind of access, such as "Writes".
    extent: what it covers.
    beyond: True if it is more than reading.
    """

    what: str
    extent: str
    beyond: bool = False


def facts(agent: Agent) -> Iterator[Fact]:
    """The rights of an agent: repositories, tools, writes, programs, network, MCP servers."""
    yield Fact("Reads", ", ".join(agent.repositories) or "every ingested repository")
    yield Fact("With", _tools(agent))
    # Other providers only have the tools of the index, which only read.
    rights = agent.rights if agent.may_be_codex else None
    if rights is None or not rights.any:
        yield Fact("Changes", "nothing: it cannot write, run programs or reach the network")
    else:
        write = "files of the working folder" if rights.write else "no files"
        yield Fact("Writes", write, rights.write)
        yield Fact("Runs", _programs(rights), rights.run)
        yield Fact("Network", "yes" if rights.network else "no", rights.network)
    if agent.project_docs:
        yield Fact("Follows", "AGENTS.md of the working folder", True)
    if agent.may_be_codex and agent.servers:
        yield Fact("MCP servers", ", ".join(agent.servers), True)
    if not agent.only_searches:
        yield Fact("For", "staff" if agent.is_for_staff else "every user", not agent.is_for_staff)


def _programs(rights: Rights) -> str:
    if rights.unlimited:
        return "programs without a sandbox, which read and change all that codeinfo can"
    if not rights.run:
        return "none"
    folders = ", ".join(map(str, rights.readable))
    return "programs in the working folder" + (f", which also read {folders}" if folders else "")


def _tools(agent: Agent) -> str:
    if agent.tools is None:
        return "every tool of the index"
    return ", ".join(agent.tools) or f"none of the {len(TOOLS)} tools of the index"
