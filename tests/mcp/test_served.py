"""Over a real socket: who hangs up ends the call, and the ports are what they should be."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.browser.product import Product
from tests.mcp.speech import EVERY, PATIENCE, STATELESS, request
from tests.mcp.waiting import headers, waiting

pytestmark = pytest.mark.door


@contextmanager
def calling(served: Product, version: str, id: str, meta: Any) -> Iterator[httpx.Response]:
    body = request("tools/call", {"name": "wait"} | meta, version)
    sent = headers(body, version) | {"x-request-id": id}
    with httpx.stream(
        "POST", f"{served.url}/mcp", json=body, headers=sent, timeout=PATIENCE
    ) as answer:
        yield answer


@pytest.mark.parametrize("version", EVERY)
def test_closing_a_stream_ends_the_call(served: Product, version: str) -> None:
    id = f"stream-{version}"
    with calling(served, version, id, {"_meta": {"progressToken": 1}}) as answer:
        lines = (line for line in answer.iter_lines() if line.startswith("data: "))
        assert "Waiting" in next(lines)
        assert id in waiting(served)
    while id in waiting(served):
        pass


@pytest.mark.parametrize("version", EVERY)
def test_closing_the_connection_before_an_answer_ends_the_call(
    served: Product, version: str
) -> None:
    id = f"object-{version}"
    body = request("tools/call", {"name": "wait"}, version)
    content = httpx.Request("POST", f"{served.url}/mcp", json=body).read()
    sent = headers(body, version) | {"x-request-id": id, "content-type": "application/json"}
    host, port = served.url.removeprefix("http://").split(":")
    head = [f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {len(content)}"]
    head += [f"{name}: {value}" for name, value in sent.items()]
    with socket.create_connection((host, int(port)), PATIENCE) as line:
        line.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + content)
        while id not in waiting(served):
            pass
    while id in waiting(served):
        pass


@pytest.mark.parametrize(("further", "tool"), [(1, "codebase_question"), (2, "list_agents")])
def test_a_dedicated_port_serves_only_its_endpoint(
    served: Product, further: int, tool: str
) -> None:
    host, port = served.url.rsplit(":", 1)
    url = f"{host}:{int(port) + further}"
    body = request("server/discover")
    sent = headers(body, STATELESS)
    for path in ("/", "/mcp", "/any/path"):
        result = httpx.post(url + path, json=body, headers=sent, timeout=PATIENCE).json()["result"]
        assert tool in result["instructions"]
    assert httpx.get(f"{url}/health", timeout=PATIENCE).status_code == 405
    with pytest.raises(InvalidStatus), connect(f"{url.replace('http', 'ws')}/ws"):
        pass
