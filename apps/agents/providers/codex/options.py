"""A request as Codex is told it: what begins or resumes its thread, and what begins the turn."""

from dataclasses import dataclass
from urllib.parse import urlencode

from apps.agents.providers.base import ModelRequest
from apps.agents.providers.codex.flags import APPROVAL, EFFORT, NETWORK, SANDBOX, WEB_SEARCH, chosen
from apps.core.config import config
from apps.core.types import JSON

# Our endpoint's name among Codex' MCP servers.
OWN = "codeinfo"
# Nobody is there to approve anything, so what would have to be is refused (the panel says so).
RUN_AS = {APPROVAL.name: "never"}
TOOL_SECONDS = 600


@dataclass(frozen=True)
class Plan:
    """What Codex is told. `thread_id` is the thread to go on with, if there is one."""

    thread_id: str | None
    instructions: str
    thread: JSON
    turn: JSON
    text: str


def plan_of(request: ModelRequest) -> Plan:
    """Only the newest message is sent: Codex keeps the thread."""
    # The flags of the page do not apply to agents: their own settings decide.
    flags = chosen(request.flags if request.home is None else {})
    known = request.flags.get("threadId")
    first = request.messages[0]
    thread: JSON = {
        "approvalPolicy": RUN_AS[APPROVAL.name],
        "cwd": str(request.folder or config().codex_workdir.absolute()),
        "config": {**_by_flags(flags), **_own_server(request), **request.config},
    }
    turn: JSON = {}
    if request.home is None:
        thread["model"] = turn["model"] = request.model
        thread["sandbox"] = flags[SANDBOX.name]
        turn["effort"] = flags[EFFORT.name]
    elif "sandbox_mode" not in request.config:
        # Without a word from its settings it may only read.
        thread["sandbox"] = "read-only"
    return Plan(
        thread_id=known if isinstance(known, str) and known else None,
        instructions=first.text if first.role == "system" else "",
        thread=thread,
        turn=turn,
        text=next(m.text for m in reversed(request.messages) if m.role == "user"),
    )


def _by_flags(flags: JSON) -> JSON:
    return {
        "sandbox_workspace_write.network_access": flags[NETWORK.name],
        "web_search": "live" if flags[WEB_SEARCH.name] else "disabled",
    }


def _own_server(request: ModelRequest) -> JSON:
    """Our own endpoint as an MCP server of the thread, narrowed to the tools of this answer."""
    if not request.tools:
        return {}
    narrowed = [("tool", tool.name) for tool in request.tools]
    narrowed += [("repository", name) for name in request.repositories]
    server: JSON = {
        "url": f"{config().mcp_url}?{urlencode(narrowed)}",
        "tool_timeout_sec": TOOL_SECONDS,
    }
    if config().mcp_token:
        # By name, so that the token stands in no file of Codex'.
        server["bearer_token_env_var"] = "CODEINFO_MCP_TOKEN"
    return {f"mcp_servers.{OWN}": server}
