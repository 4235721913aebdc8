"""Convert a ModelRequest to the parameters of a Codex thread and turn (contract.md §8)."""

from dataclasses import dataclass
from urllib.parse import urlencode

from apps.agents.providers.base import ModelRequest
from apps.agents.providers.codex.flags import APPROVAL, EFFORT, NETWORK, SANDBOX, WEB_SEARCH, chosen
from apps.core.config import config
from apps.core.types import JSON
from apps.retrieval.query import write_area

# The name of our endpoint among Codex's MCP servers.
OWN_SERVER = "codeinfo"
# No user can approve an action, so actions that need approval are refused (the panel says so).
ENFORCED_FLAGS = {APPROVAL.name: "never"}
TOOL_SECONDS = 600


@dataclass(frozen=True)
class TurnParameters:
    """The parameters of one turn.

    thread_id: the thread to resume; None starts one.
    instructions: the developer instructions of a new thread.
    thread: parameters of `thread/start` and `thread/resume`.
    turn: parameters of `turn/start`.
    text: the user's message.
    """

    thread_id: str | None
    instructions: str
    thread: JSON
    turn: JSON
    text: str


def turn_parameters(request: ModelRequest) -> TurnParameters:
    """Build the parameters. Only the newest message is sent, because Codex stores the thread."""
    # The flags of the page do not apply to agents, which have their own settings.
    flags = chosen(request.flags if request.home is None else {})
    thread_id = request.flags.get("threadId")
    first = request.messages[0]
    thread: JSON = {
        "approvalPolicy": ENFORCED_FLAGS[APPROVAL.name],
        "cwd": str(request.folder or config().codex_workdir.absolute()),
        "config": {**_flag_config(flags), **_mcp_server(request), **request.config},
    }
    turn: JSON = {}
    if request.home is None:
        thread["model"] = turn["model"] = request.model
        thread["sandbox"] = flags[SANDBOX.name]
        turn["effort"] = flags[EFFORT.name]
    elif "sandbox_mode" not in request.config:
        # The default for an agent is read-only.
        thread["sandbox"] = "read-only"
    return TurnParameters(
        thread_id=thread_id if isinstance(thread_id, str) and thread_id else None,
        instructions=first.text if first.role == "system" else "",
        thread=thread,
        turn=turn,
        text=next(m.text for m in reversed(request.messages) if m.role == "user"),
    )


def _flag_config(flags: JSON) -> JSON:
    return {
        "sandbox_workspace_write.network_access": flags[NETWORK.name],
        "web_search": "live" if flags[WEB_SEARCH.name] else "disabled",
    }


def _mcp_server(request: ModelRequest) -> JSON:
    """Configure our endpoint as an MCP server, limited to the tools and repositories allowed."""
    if not request.tools:
        return {}
    query = [("tool", tool.name) for tool in request.tools]
    query += [("repository", name) for name in request.repositories]
    query += [("area", write_area(area)) for area in request.areas]
    server: JSON = {
        "url": f"{config().mcp_url}?{urlencode(query)}",
        "tool_timeout_sec": TOOL_SECONDS,
    }
    if config().mcp_token:
        # By the variable's name, so that Codex stores the token in no file.
        server["bearer_token_env_var"] = "CODEINFO_MCP_TOKEN"
    return {f"mcp_servers.{OWN_SERVER}": server}
