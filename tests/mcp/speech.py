"""How clients speak: requests of every revision, and what the application answers, socketless."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from asgiref.testing import ApplicationCommunicator

from apps.core.types import JSON
from apps.mcp import tasks
from codeinfo.asgi import application

EARLY = ("2024-11-05", "2025-03-26", "2025-06-18")
HANDSHAKE = (*EARLY, "2025-11-25")
STATELESS = "2026-07-28"
EVERY = (*HANDSHAKE, STATELESS)
PATIENCE = 60
PREFIX = "io.modelcontextprotocol"
META = {f"{PREFIX}/protocolVersion": STATELESS, f"{PREFIX}/clientCapabilities": {}}
KNOWS = META | {f"{PREFIX}/clientCapabilities": {"extensions": {tasks.EXTENSION: {}}}}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
NAMED |= dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId")
BOTH = "application/json, text/event-stream"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def kind(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def json(self) -> JSON:
        value: JSON = json.loads(self.body, parse_constant=_no_number)
        return value

    @property
    def result(self) -> JSON:
        result: JSON = self.json["result"]
        return result

    @property
    def error(self) -> JSON:
        error: JSON = self.json["error"]
        return error

    @property
    def events(self) -> list[JSON]:
        return events_in(self.body.decode())


def _no_number(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def events_in(text: str) -> list[JSON]:
    """The messages of an event stream, comments left out."""
    lines = text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def request(method: str, params: JSON | None = None, version: str = STATELESS) -> JSON:
    """A request as a client of that revision writes it."""
    fields = params or {}
    if version == STATELESS:
        fields = fields | {"_meta": META | fields.get("_meta", {})}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": fields}


def headers_for(body: JSON, version: str) -> dict[str, str]:
    """The headers of a revision; up to 2025-03-26 there were none."""
    if version < "2025-06-18":
        return {}
    headers = {"mcp-protocol-version": version}
    if version == STATELESS:
        headers["mcp-method"] = body["method"]
        if body["method"] in NAMED:
            headers["mcp-name"] = body["params"].get(NAMED[body["method"]], "")
    return headers


async def ask(
    method: str,
    params: JSON | None = None,
    version: str = STATELESS,
    path: str = "/mcp",
    **headers: str,
) -> Answer:
    """Send one request as a client of that revision would."""
    body = request(method, params, version)
    return await send(body, path=path, **headers_for(body, version), **headers)


async def call(tool: str, version: str = STATELESS, path: str = "/mcp", **arguments: Any) -> Answer:
    return await ask("tools/call", {"name": tool, "arguments": arguments}, version, path)


async def send(body: JSON | bytes | str, path: str = "/mcp", **headers: str) -> Answer:
    """Send a body with these headers; a word's `_` is a header's `-`."""
    async with connection(body, path, **headers) as door:
        return await whole(door)


@asynccontextmanager
async def connection(
    body: JSON | bytes | str,
    path: str = "/mcp",
    method: str = "POST",
    port: int = 5010,
    **headers: str,
) -> AsyncIterator[ApplicationCommunicator]:
    """One HTTP exchange, to be read by `whole` or left by `hang_up`."""
    content = json.dumps(body) if isinstance(body, dict) else body
    content = content.encode() if isinstance(content, str) else content
    pairs = {"host": "localhost", "content-type": "application/json", "accept": BOTH}
    pairs |= {name.replace("_", "-"): value for name, value in headers.items()}
    pairs["content-length"] = str(len(content))
    address, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": address,
        "query_string": query.encode(),
        "server": ("localhost", port),
        "headers": [(name.encode(), value.encode()) for name, value in pairs.items() if value],
    }
    door = ApplicationCommunicator(application, scope)
    await door.send_input({"type": "http.request", "body": content})
    try:
        yield door
    finally:
        await hang_up(door)


async def whole(door: ApplicationCommunicator) -> Answer:
    """The answer to its end."""
    start = await door.receive_output(PATIENCE)
    body, part = b"", {"more_body": True}
    while part.get("more_body"):
        part = await door.receive_output(PATIENCE)
        body += part.get("body", b"")
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], headers, body)


async def hang_up(door: ApplicationCommunicator) -> None:
    """Close the connection, whatever has come of it so far, and wait until it has been noticed."""
    if not door.future.done():
        await door.send_input({"type": "http.disconnect"})
    await asyncio.wait({door.future}, timeout=PATIENCE)
    assert door.future.done()
