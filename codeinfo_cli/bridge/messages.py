"""JSON-RPC messages: what the bridge reads of them, and their form over HTTP."""

import base64
import json
import re
from dataclasses import dataclass, field
from typing import Any

PREFIX = "io.modelcontextprotocol/"
VERSION_META, CAPABILITIES_META = f"{PREFIX}protocolVersion", f"{PREFIX}clientCapabilities"
INVALID_REQUEST, INTERNAL_ERROR = -32600, -32603
# The parameter that the header Mcp-Name repeats, in stateless revisions.
NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
PLAIN = re.compile(r"[!-~]([ -~]*[!-~])?")
# The largest message that is passed to the client. The server sends far smaller ones.
MAX_MESSAGE = 64 * 2**20


class BadAnswer(Exception):
    """The server's answer is not a message of MCP."""


class Disconnected(Exception):
    """The connection to the server broke before its answer."""


@dataclass(frozen=True)
class Message:
    """A line of the client.

    line: the bytes, without the line break; they are sent unchanged.
    kind: "request", "notification", "response", or "invalid": the server tells what is wrong
    """

    line: bytes
    kind: str
    id: int | str | None = None
    method: str = ""
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def meta(self) -> dict[str, Any]:
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def key(self) -> str:
        return key_of(self.id)

    @property
    def is_stateless(self) -> bool:
        """True for requests of 2026-07-28 and later, which name their revision themselves."""
        return VERSION_META in self.meta


def key_of(id: object) -> str:
    """Return a key for a request id: 1 and "1" are two ids."""
    return json.dumps(id)


def parse(line: bytes) -> Message:
    """Parse a line of the client. Does not raise."""
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError):
        return Message(line, "invalid")
    if not isinstance(value, dict):
        return Message(line, "invalid")
    id, method, params = value.get("id"), value.get("method"), value.get("params")
    known_id = isinstance(id, int | str) and not isinstance(id, bool)
    if method is None and ("result" in value or "error" in value):
        return Message(line, "response")
    if not isinstance(method, str) or ("id" in value and not known_id):
        return Message(line, "invalid", id if known_id else None)
    kind = "request" if "id" in value else "notification"
    return Message(line, kind, id, method, params if isinstance(params, dict) else {})


def headers_of(message: Message, *, version: str, session: str) -> dict[str, str]:
    """Return the MCP headers of a message.

    version, session: as agreed by `initialize`; "" before
    """
    headers: dict[str, str] = {}
    if message.is_stateless:
        headers["mcp-protocol-version"] = as_header(message.meta[VERSION_META])
        headers["mcp-method"] = as_header(message.method)
        name = message.params.get(NAMED_BY.get(message.method, ""))
        if isinstance(name, str) and name:
            headers["mcp-name"] = as_header(name)
        return headers
    if version:
        headers["mcp-protocol-version"] = version
    if session:
        headers["mcp-session-id"] = session
    return headers


def as_header(value: object) -> str:
    """Return text as a header's value, encoded unless it is plain ASCII."""
    text = str(value)
    if PLAIN.fullmatch(text) and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode(errors='replace')).decode()}?="


def error_line(id: int | str | None, code: int, text: str, reason: str) -> bytes:
    """Return a JSON-RPC error. `reason`: a stable word in `data.code`."""
    error = {"code": code, "message": text, "data": {"code": reason}}
    return as_line({"jsonrpc": "2.0", "id": id, "error": error})


def result_line(id: int | str | None, result: dict[str, Any]) -> bytes:
    return as_line({"jsonrpc": "2.0", "id": id, "result": result})


def as_line(value: object) -> bytes:
    return json.dumps(value, allow_nan=False).encode()


def answer_line(body: bytes, id: int | str | None) -> bytes:
    """Return the server's answer as a line, with the request's id if the server did not read it.

    Raises BadAnswer.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise BadAnswer("The server's answer is not JSON.") from None
    if not isinstance(value, dict) or not ("result" in value or "error" in value):
        raise BadAnswer("The server's answer is not a message of MCP.")
    if value.get("id") is None and id is not None:
        return as_line(value | {"id": id})
    stripped = body.strip()
    return as_line(value) if b"\n" in stripped or b"\r" in stripped else stripped


def is_answer(line: bytes, id: int | str | None) -> bool:
    """Return True if a message of a stream is the answer to the request `id`."""
    value = json.loads(line)
    return isinstance(value, dict) and "method" not in value and value.get("id") == id
