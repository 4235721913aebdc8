"""Convert a ModelRequest to the parameters of a Codex thread and turn (contract.md §8)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from apps.agents.messages import Message
from apps.agents.providers.base import ModelRequest, Rights
from apps.agents.providers.codex import sandbox
from apps.agents.providers.codex.flags import EFFORT, NETWORK, WEB_SEARCH, chosen
from apps.agents.providers.codex.wire import OWN_SERVER
from apps.core.config import config
from apps.core.types import JSON
from apps.retrieval.query import write_area

TOOL_SECONDS = 600
# Of the earlier messages that a new thread is sent.
MAX_EARLIER_CHARS = 200_000
EARLIER = "The conversation so far:"
NEWEST = "Answer this message, with the conversation in mind:"


@dataclass(frozen=True)
class TurnParameters:
    """The parameters of one turn.

    thread_id: the thread to resume; None starts one.
    instructions: the developer instructions of a new thread.
    thread: parameters of `thread/start` and `thread/resume`.
    turn: parameters of `turn/start`.
    text: the user's message.
    first_text: the same with the earlier messages, for a new thread.
    """

    thread_id: str | None
    instructions: str
    thread: JSON
    turn: JSON
    text: str
    first_text: str


def turn_parameters(request: ModelRequest, folder: Path) -> TurnParameters:
    """Build the parameters. A thread that resumes is sent the newest message only, because Codex
    stores the others.

    folder: the working folder.
    """
    is_chat = request.home is None
    # The flags of the page do not apply to agents, which have their own settings.
    flags = chosen(request.flags if is_chat else {})
    thread_id = request.flags.get("threadId")
    first = request.messages[0]
    if is_chat:
        rights = Rights(network=flags[NETWORK.name])
        web_search = "live" if flags[WEB_SEARCH.name] else "disabled"
    else:
        rights = request.rights
        web_search = request.config.get("web_search", "disabled") if rights.network else "disabled"
    limits = sandbox.thread_config(folder, rights, request.config, web_search)
    thread: JSON = {
        # No user can approve an action, so actions that need approval are refused.
        "approvalPolicy": "never",
        "cwd": str(folder),
        **sandbox.selected(rights),
        "config": limits | {"mcp_servers": _mcp_servers(request)},
    }
    turn: JSON = {} if sandbox.has_environment(rights) else {"environments": []}
    if is_chat:
        thread["model"] = turn["model"] = request.model
        turn["effort"] = flags[EFFORT.name]
    *earlier, newest = [m for m in request.messages if m.role in ("user", "assistant")]
    return TurnParameters(
        thread_id=thread_id if isinstance(thread_id, str) and thread_id else None,
        instructions=first.text if first.role == "system" else "",
        thread=thread,
        turn=turn,
        text=newest.text,
        first_text=_with_earlier(earlier, newest.text),
    )


def _with_earlier(earlier: Sequence[Message], text: str) -> str:
    """A message after the newest of the earlier ones, as far as MAX_EARLIER_CHARS reaches."""
    kept: list[str] = []
    left = MAX_EARLIER_CHARS
    for message in reversed(earlier):
        left -= len(message.text)
        if left < 0:
            break
        kept.append(f"{message.role}: {message.text}")
    if not kept:
        return text
    return "\n\n".join([EARLIER, *reversed(kept), f"{NEWEST}\n\n{text}"])


def _mcp_servers(request: ModelRequest) -> JSON:
    """Return an agent's own servers and our endpoint, limited to its tools and repositories."""
    servers: JSON = dict(request.config.get("mcp_servers", {}))
    if request.tools:
        servers[OWN_SERVER] = _own_server(request)
    return servers


def _own_server(request: ModelRequest) -> JSON:
    # Rows in the full form, for the page: Codex gives `_meta` to no model.
    query = [("full", "1"), *(("tool", tool.name) for tool in request.tools)]
    query += [("repository", name) for name in request.repositories]
    query += [("area", write_area(area)) for area in request.areas]
    server: JSON = {
        "url": f"{config().mcp_url}?{urlencode(query)}",
        "tool_timeout_sec": TOOL_SECONDS,
    }
    if config().mcp_token:
        # By the variable's name, so that Codex stores the token in no file.
        server["bearer_token_env_var"] = "CODEINFO_MCP_TOKEN"
    return server
