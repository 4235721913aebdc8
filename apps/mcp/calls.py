"""tools/call: find the tool, read its arguments, run it within a time limit."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.core.errors import Unavailable
from apps.core.types import JSON
from apps.core.values.surrogates import encodable
from apps.mcp.arguments import read_arguments
from apps.mcp.protocol_version import ProtocolVersion
from apps.mcp.specification import INVALID_PARAMS
from apps.mcp.types import (
    QUESTION,
    Call,
    Contents,
    InputRequired,
    McpEndpoint,
    McpTool,
    Report,
    Workspace,
)
from apps.mcp.wire import Message, RpcError
from apps.mcp.workspace import workspace_of
from apps.tools.tool import INDEX

CALL_SECONDS = 600.0
# In `_meta` of a result, so that no model pays for them: the URIs of the resources that it quotes.
LINKS_META_KEY = "codeinfo/uris"
# Fields of an answer that are in `_meta` too: what it stands on (`standing`); what to ask the user,
# which the bridge does.
BESIDE = {INDEX: "codeinfo/index", QUESTION: "codeinfo/question"}
# A form without fields: to accept it is to agree.
NO_FIELDS: JSON = {"type": "object", "properties": {}}


def tool_named(endpoint: McpEndpoint, message: Message) -> McpTool:
    """The tool that a call names. Raises RpcError -32602 for an unknown tool."""
    name = message.params["name"]
    tools = {tool.name: tool for tool in endpoint.registry()}
    if name not in tools:
        known = {"tools": sorted(tools)}
        raise RpcError(INVALID_PARAMS, f"Unknown tool {name[:100]}", data=known)
    return tools[name]


@dataclass(frozen=True)
class PreparedCall:
    """A tool and its arguments, as `read_arguments` returns them.

    workspace, answers: as in Call.
    seconds: time limit, by default CALL_SECONDS.
    """

    tool: McpTool
    arguments: Mapping[str, Any]
    protocol: ProtocolVersion
    workspace: Workspace
    answers: Mapping[str, Any]
    seconds: float = 0

    async def run(self, report: Report) -> JSON:
        """Run the tool and return the `result` of the answer.

        Raises what the tool raises, and Unavailable TIMED_OUT after `seconds`.
        """
        seconds = self.seconds or CALL_SECONDS
        capabilities, workspace = self.protocol.capabilities, self.workspace
        about = (self.protocol.version, report, capabilities, workspace)
        call = Call(*about, answers=self.answers)
        try:
            async with asyncio.timeout(seconds) as limit:
                return _result(self.tool, await self.tool.run(self.arguments, call))
        except TimeoutError as error:
            if not limit.expired():
                raise
            message = f"The call was ended after {seconds:.0f} seconds. Ask for less at once."
            raise Unavailable(message, code="TIMED_OUT", retryable=False) from error


def prepare(
    tool: McpTool, message: Message, protocol: ProtocolVersion, headers: Mapping[str, str]
) -> PreparedCall:
    """Read the arguments, and where the client works. Raises InvalidInput VALIDATION_FAILED."""
    received = message.params.get("arguments") or {}
    answers = message.params.get("inputResponses")
    # Handshake revisions do not define it, so it may be anything there.
    answers = answers if isinstance(answers, Mapping) else {}
    arguments = read_arguments(tool, received)
    return PreparedCall(tool, arguments, protocol, workspace_of(headers), answers)


def _result(tool: McpTool, value: JSON | Contents | InputRequired) -> JSON:
    if isinstance(value, Contents):
        return {"content": list(value.items)}
    if isinstance(value, InputRequired):
        return _input_required(value)
    beside = {key: value[name] for name, key in BESIDE.items() if name in value}
    value = {key: member for key, member in value.items() if key not in BESIDE}
    # Without spaces: every client's model pays for them.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # File names that are not UTF-8 contain lone surrogates.
    clean = encodable(text)
    structured = value if clean == text else json.loads(clean)
    links = tool.links(structured) if tool.links else ()
    meta = ({LINKS_META_KEY: list(links)} if links else {}) | beside
    shown = {"_meta": meta} if meta else {}
    return {"content": [{"type": "text", "text": clean}], "structuredContent": structured, **shown}


def _input_required(value: InputRequired) -> JSON:
    requests = {
        name: {
            "method": "elicitation/create",
            "params": {"mode": "form", "message": text, "requestedSchema": NO_FIELDS},
        }
        for name, text in value.questions.items()
    }
    return {"resultType": "input_required", "inputRequests": requests}


async def no_progress(message: str, done: float | None, total: float | None) -> None:
    """Discard progress: the client did not request it."""
