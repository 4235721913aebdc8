"""A stand-in for `/mcp` with a test's tools, for an agent that calls tools itself.

It returns the same JSON as `/mcp?tool=…`, errors included. tests/agents/codex/test_product.py tests
the real endpoint.
"""

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Self
from urllib.parse import parse_qs, urlsplit

from apps.core.errors import CodeinfoError
from apps.core.types import JSON
from apps.tools.tool import Tool


class MCPStandIn:
    """A context manager. `tools` may change while it runs; `queries` are those of the requests."""

    def __init__(self) -> None:
        self.tools: Sequence[Tool] = ()
        self.queries: list[dict[str, list[str]]] = []
        self.tokens: set[str] = set()
        handler = type("Handler", (_Handler,), {"server_of": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/mcp"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def answer(self, method: str, params: JSON) -> JSON:
        match method:
            case "initialize":
                return {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "stand-in", "version": "1"},
                }
            case "tools/list":
                return {"tools": [_listed(tool) for tool in self.tools]}
            case "tools/call":
                return self._called(params["name"], params.get("arguments") or {})
            case _:
                return {}

    def _called(self, name: str, arguments: JSON) -> JSON:
        tool = next(tool for tool in self.tools if tool.name == name)
        try:
            payload = tool.run(arguments)
        except CodeinfoError as error:
            words = f"{error.code}: {error.message}"
            return {"content": [{"type": "text", "text": words}], "isError": True}
        content = [{"type": "text", "text": json.dumps(payload)}]
        return {"content": content, "structuredContent": payload}


def _listed(tool: Tool) -> JSON:
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.parameters,
        "annotations": {"readOnlyHint": True},
    }


class _Handler(BaseHTTPRequestHandler):
    server_of: ClassVar[MCPStandIn]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server_of.queries.append(parse_qs(urlsplit(self.path).query))
        self.server_of.tokens.add(self.headers.get("Authorization", ""))
        if "id" not in body:
            self._send(202, b"")
            return
        result = self.server_of.answer(body["method"], body.get("params") or {})
        answer = {"jsonrpc": "2.0", "id": body["id"], "result": result}
        self._send(200, json.dumps(answer).encode())

    def _send(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
