"""tools/call: find the tool, read its arguments, run it within a time limit."""

import asyncio
import json
from collections.abc import Mapping

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
    Work,
)
from apps.mcp.wire import Message, RpcError
from apps.mcp.workspace import workspace_of
from apps.tools.capping import FULL, FULL_META_KEY
from apps.tools.tool import INDEX

CALL_SECONDS = 600.0
# In `_meta` of a result, so that no model pays for them: the URIs of the resources that it quotes.
LINKS_META_KEY = "codeinfo/uris"
# Fields of an answer that are in `_meta`: what it stands on (`standing`); what to ask the user,
# which the bridge does; its rows in the full form.
BESIDE = {INDEX: "codeinfo/index", QUESTION: "codeinfo/question", FULL: FULL_META_KEY}
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


def prepare(
    tool: McpTool,
    message: Message,
    protocol: ProtocolVersion,
    headers: Mapping[str, str],
    seconds: float,
) -> Work:
    """Read the arguments of a call. Raises InvalidInput VALIDATION_FAILED.

    The work returns the `result` of the answer. It raises what the tool raises, and Unavailable
    TIMED_OUT after `seconds`.
    """
    arguments = read_arguments(tool, message.params.get("arguments") or {})
    answers = message.params.get("inputResponses")
    # Handshake revisions do not define it, so it may be anything there.
    answers = answers if isinstance(answers, Mapping) else {}
    workspace = workspace_of(headers)

    async def run(report: Report) -> JSON:
        call = Call(protocol.version, report, protocol.capabilities, workspace, answers)
        try:
            async with asyncio.timeout(seconds) as limit:
                return _result(tool, await tool.run(arguments, call))
        except TimeoutError as error:
            if not limit.expired():
                raise
            problem = f"The call was ended after {seconds:.0f} seconds. Ask for less at once."
            raise Unavailable(problem, code="TIMED_OUT", retryable=False) from error

    return run


def _result(tool: McpTool, value: JSON | Contents | InputRequired) -> JSON:
    if isinstance(value, Contents):
        return {"content": list(value.items)}
    if isinstance(value, InputRequired):
        return _input_required(value)
    _, beside = _encodable({key: value[name] for name, key in BESIDE.items() if name in value})
    text, structured = _encodable({k: member for k, member in value.items() if k not in BESIDE})
    links = tool.links(structured) if tool.links else ()
    meta = ({LINKS_META_KEY: list(links)} if links else {}) | beside
    shown = {"_meta": meta} if meta else {}
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured, **shown}


def _encodable(value: JSON) -> tuple[str, JSON]:
    """The text of a value, and the value, without the lone surrogates of names of files that are
    not UTF-8."""
    # Without spaces: every client's model pays for them.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    clean = encodable(text)
    return clean, value if clean == text else json.loads(clean)


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
