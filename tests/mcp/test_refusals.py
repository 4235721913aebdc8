"""What an endpoint turns away, in the order in which it looks; the answer always is JSON-RPC."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.mcp.speech import Answer, ask, connection, request, send, whole

# The end of a request looks at the connection that an earlier test of this process opened.
pytestmark = pytest.mark.django_db

PING = request("ping", version="2024-11-05")
PATHS = ["/mcp", "/mcp/chat", "/mcp/agents", "/mcp/"]
MEBIBYTE = 1 << 20


async def post(body: Any = PING, method: str = "POST", path: str = "/mcp", **more: str) -> Answer:
    async with connection(body, path, method, **more) as door:
        return await whole(door)


def refused(answer: Answer, status: int, code: int = -32600) -> None:
    assert (answer.status, answer.kind) == (status, "application/json")
    assert (answer.json["jsonrpc"], answer.json["id"]) == ("2.0", None)
    assert answer.error["code"] == code and answer.error["message"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT", "PATCH", "OPTIONS", "TRACE"])
async def test_only_post_is_served(path: str, method: str) -> None:
    answer = await post(method=method, path=path)
    assert answer.headers["allow"] == "POST"
    if method != "HEAD":
        refused(answer, 405)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil", "localhost:x", " "]
)
async def test_a_rebound_host_name_is_forbidden(path: str, host: str) -> None:
    answer = await post(path=path, host=host)
    refused(answer, 403)
    assert "CODEINFO_ALLOWED_HOSTS" in answer.error["message"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "origin",
    [
        *("http://evil.example", "null", "http://localhost.evil.example", "http://localhost:81"),
        *("file://", "http://", "http://localhost@evil.example", "localhost", "http://[::1"),
    ],
)
async def test_another_origin_is_forbidden(path: str, origin: str) -> None:
    answer = await post(path=path, origin=origin)
    refused(answer, 403)
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:5010", "[::1]:5010"])
async def test_a_page_of_the_same_origin_is_allowed(host: str) -> None:
    assert (await post(host=host, origin=f"http://{host}")).result == {}


async def test_a_configured_origin_is_allowed_with_cors_headers(
    configure: Callable[..., None],
) -> None:
    configure(allowed_origins=("https://tool.example",))
    preflight = await post(b"", "OPTIONS", origin="https://tool.example")
    assert preflight.status == 204
    assert "mcp-protocol-version" in preflight.headers["access-control-allow-headers"]
    answer = await post(origin="https://tool.example")
    assert answer.headers["access-control-allow-origin"] == "https://tool.example"
    refused(await post(origin="https://other.example"), 403)
    refused(await post(b"", "OPTIONS", origin="https://other.example"), 405)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("token", "status"),
    [
        *(("", 401), ("Bearer", 401), ("Bearer nope", 401), ("Basic key-1", 401)),
        *(("Bearer key-1 ", 401), ("Bearer key-1", 200), ("bearer key-1", 200)),
    ],
)
async def test_a_configured_token_is_required(
    configure: Callable[..., None], path: str, token: str, status: int
) -> None:
    configure(mcp_token="key-1")
    answer = await post(path=path, authorization=token)
    assert answer.status == status
    if status == 401:
        refused(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_the_token_of_the_api_is_refused(configure: Callable[..., None]) -> None:
    configure(mcp_token="key-1", api_token="key-2")
    refused(await post(authorization="Bearer key-2"), 401)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "kind",
    [
        *("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"),
        *("text/json", "application/jsonp", "application/json-seq", "é"),
    ],
)
async def test_only_json_is_accepted(path: str, kind: str) -> None:
    refused(await post(path=path, content_type=kind), 415)


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
async def test_the_content_type_of_json_may_have_parameters(kind: str) -> None:
    assert (await post(content_type=kind)).result == {}


async def test_a_large_body_is_refused_and_one_at_the_cap_is_read() -> None:
    filled = json.dumps(PING | {"x": ""}).encode()
    whole_cap = filled.replace(b'"x": ""', b'"x": "%s"' % (b"x" * (MEBIBYTE - len(filled))))
    assert len(whole_cap) == MEBIBYTE
    assert (await post(whole_cap)).result == {}
    refused(await post(whole_cap + b" "), 413)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"nul", b"\xff", b'"\xff"', b"NaN", b'{"id": Infinity}', b"1" * 5000),
        *(b"[" * 100_000, b'{"a":' * 101 + b"1" + b"}" * 101, b"[" * 102 + b"]" * 102),
        *('{"a": "\\ud800"}', json.dumps(PING).encode("utf-16"), b"\xef\xbb\xbf{}"),
    ],
)
async def test_invalid_json_is_refused(body: bytes) -> None:
    refused(await post(body), 400, -32700)


@pytest.mark.parametrize(
    "body",
    [
        *("[]", "5", '"ping"', "null", "true", "{}"),
        # Batches, of one message too.
        *(json.dumps([PING]), json.dumps([PING, PING])),
        # Answers of a server are no requests.
        '{"jsonrpc": "2.0", "id": null, "result": {}}',
        *(json.dumps(PING | {"id": id}) for id in (None, 1.5, 1.0, True, [], {}, [1])),
        '{"jsonrpc": "2.0", "id": 1e400, "method": "ping"}',
    ],
)
async def test_an_invalid_request_is_refused(body: str) -> None:
    refused(await post(body), 400)


@pytest.mark.parametrize(
    "changed",
    [
        *({"jsonrpc": version} for version in ("1.0", 2.0, None)),
        *({"method": method} for method in (None, 5, ["ping"])),
    ],
)
async def test_a_malformed_request_is_answered_with_its_id(changed: dict) -> None:
    answer = await post(PING | {"id": "mine"} | changed)
    assert (answer.status, answer.json["id"], answer.error["code"]) == (400, "mine", -32600)


async def test_a_posted_response_is_refused_with_its_id() -> None:
    answer = await post({"jsonrpc": "2.0", "id": 7, "result": {}})
    assert (answer.status, answer.json["id"], answer.error["code"]) == (400, 7, -32600)


@pytest.mark.parametrize("params", [[], "x", 5, True])
async def test_parameters_must_be_an_object(params: Any) -> None:
    answer = await post(PING | {"params": params})
    assert (answer.status, answer.error["code"]) == (400, -32602)


@pytest.mark.parametrize("id", [0, -1, 2**70, "", "é", "x" * 500])
async def test_an_id_is_returned_unchanged(id: Any) -> None:
    assert (await post(PING | {"id": id})).json["id"] == id


async def test_the_first_failed_check_decides(configure: Callable[..., None]) -> None:
    """Each request is wrong in everything from one step of the ladder on."""
    configure(mcp_token="key-1")
    wrong = {
        "host": "evil.example",
        "origin": "null",
        "authorization": "",
        "content_type": "text/plain",
    }
    huge = "x" * (MEBIBYTE + 1)
    refused(await post(huge, "GET", **wrong), 405)
    refused(await post(huge, **wrong), 403)
    refused(await post(huge, **(wrong | {"host": "localhost"})), 403)
    wrong |= {"host": "localhost", "origin": ""}
    refused(await post(huge, **wrong), 401)
    wrong |= {"authorization": "Bearer key-1"}
    refused(await post(huge, **wrong), 415)
    wrong |= {"content_type": "application/json", "mcp_protocol_version": "9"}
    refused(await post(huge, **wrong), 413)
    refused(await post("{", **wrong), 400, -32700)
    refused(await post("{}", **wrong), 400, -32600)
    answer = await post({"jsonrpc": "2.0", "id": 1, "method": "none"}, **wrong)
    assert answer.error["code"] == -32022
    wrong |= {"mcp_protocol_version": "2025-06-18"}
    none = {"jsonrpc": "2.0", "id": 1, "method": "none", "params": {"cursor": 5}}
    assert (await post(none, **wrong)).error["code"] == -32601
    assert (await post(none | {"method": "tools/list"}, **wrong)).error["code"] == -32602


@pytest.mark.parametrize("path", ["/mcp//", "/mcp/none", "/mcpx", "/MCP"])
async def test_other_paths_are_not_found(path: str) -> None:
    answer = await post(path=path)
    assert (answer.status, answer.json["code"]) == (404, "NOT_FOUND")


class TestOnItsOwnPort:
    async def on_port(self, path: str, port: int, method: str = "POST") -> Answer:
        async with connection(PING, path, method, port=port) as door:
            return await whole(door)

    @pytest.mark.parametrize("port", [5011, 5012])
    @pytest.mark.parametrize("path", ["/", "/mcp", "/health", "/admin/", "/static/css/tokens.css"])
    async def test_every_path_is_the_endpoint(self, path: str, port: int) -> None:
        assert (await self.on_port(path, port)).result == {}
        refused(await self.on_port(path, port, "GET"), 405)


async def test_a_refused_request_has_a_request_id() -> None:
    answer = await send("{", x_request_id="mine-1")
    assert answer.headers["x-request-id"] == "mine-1"
    assert (await ask("ping", version="2024-11-05")).headers["x-content-type-options"] == "nosniff"
