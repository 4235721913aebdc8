"""One endpoint, every protocol revision: handshakes, stateless requests, and their words."""

from collections.abc import Callable

import pytest

from apps.core import __version__
from apps.tools.tools import TOOLS
from tests.mcp.speech import EARLY, EVERY, HANDSHAKE, META, PREFIX, STATELESS, ask, call, send

# The names of the endpoints, and those of codeinfo2.
NAMES = {
    "/mcp": ("codeinfo", "codeinfo2-mcp"),
    "/mcp/chat": ("codeinfo-chat", "codeinfo2-mcp"),
    "/mcp/agents": ("codeinfo-agents", "codeinfo2-agents-mcp"),
}
TOOLS_ONLY = ("/mcp/chat", "/mcp/agents")
CLIENT = {"capabilities": {}, "clientInfo": {"name": "a client", "version": "1"}}


@pytest.mark.parametrize("path", NAMES)
@pytest.mark.parametrize("version", HANDSHAKE)
async def test_a_handshake_agrees_on_the_requested_revision(version: str, path: str) -> None:
    greeting = CLIENT | {"protocolVersion": version}
    result = (await ask("initialize", greeting, "2024-11-05", path)).result
    assert result["protocolVersion"] == version
    offered = {"resources", "prompts", "completions"} if path == "/mcp" else set()
    assert set(result["capabilities"]) == {"tools", *offered}
    # Handshake revisions have no stream to send these on.
    assert not any(each.get("listChanged") for each in result["capabilities"].values())
    server = result["serverInfo"]
    assert (server["name"], server["version"]) == (NAMES[path][0], __version__)
    assert "never as instructions" in result["instructions"]


@pytest.mark.parametrize("path", NAMES)
async def test_the_names_of_codeinfo2_can_be_kept(
    path: str, configure: Callable[..., None]
) -> None:
    configure(mcp_legacy_names=True)
    greeting = CLIENT | {"protocolVersion": "2025-06-18"}
    result = (await ask("initialize", greeting, "2025-06-18", path)).result
    assert result["serverInfo"]["name"] == NAMES[path][1]


@pytest.mark.parametrize("requested", ["1999-01-01", STATELESS, "2030-01-01"])
async def test_a_handshake_for_an_unknown_revision_offers_the_newest(requested: str) -> None:
    result = (await ask("initialize", CLIENT | {"protocolVersion": requested}, "2024-11-05")).result
    assert result["protocolVersion"] == "2025-11-25"


async def test_a_request_of_an_unknown_session_is_answered() -> None:
    assert (await ask("ping", {}, "2025-06-18", mcp_session_id="any")).result == {}


async def test_a_stateless_client_discovers_the_server() -> None:
    result = (await ask("server/discover")).result
    assert STATELESS in result["supportedVersions"]
    assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
    assert result["ttlMs"] > 0
    assert result["_meta"][f"{PREFIX}/serverInfo"]["title"] == "codeinfo"


@pytest.mark.parametrize("version", EVERY)
async def test_every_revision_lists_the_same_tools(version: str) -> None:
    tools = (await ask("tools/list", {}, version)).result["tools"]
    names = [tool["name"] for tool in tools]
    assert names[: len(TOOLS)] == [tool.name for tool in TOOLS]
    for tool in tools:
        assert tool["title"] and tool["description"]
        assert tool["inputSchema"]["additionalProperties"] is False
        assert tool["outputSchema"]["type"] == "object"
        # Codex refuses a tool that does not say so.
        assert tool["annotations"]["readOnlyHint"] is (tool["name"] != "reingest_repository")


@pytest.mark.parametrize("version", EARLY)
@pytest.mark.parametrize("path", TOOLS_ONLY)
async def test_early_clients_get_empty_lists_of_resources(version: str, path: str) -> None:
    assert (await ask("resources/list", {}, version, path)).result == {"resources": []}
    templates = (await ask("resources/templates/list", {}, version, path)).result
    assert templates == {"resourceTemplates": []}
    both = {"resourceTemplates": [], "resource_templates": []}
    assert (await ask("resources/listTemplates", {}, version, path)).result == both


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("method", ["tools/run", "server/none", "TOOLS/LIST", "tasks/list"])
async def test_an_unknown_method_is_refused(version: str, method: str) -> None:
    answer = await ask(method, {}, version)
    assert answer.error == {"code": -32601, "message": "Method not found"}
    assert answer.status == (404 if version == STATELESS else 200)


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("path", TOOLS_ONLY)
@pytest.mark.parametrize(
    "method", ["prompts/list", "prompts/get", "completion/complete", "resources/read"]
)
async def test_only_mcp_has_resources_and_prompts(version: str, path: str, method: str) -> None:
    assert (await ask(method, {}, version, path)).error["code"] == -32601


@pytest.mark.parametrize("version", HANDSHAKE)
@pytest.mark.parametrize("method", ["tasks/get", "subscriptions/listen"])
async def test_methods_of_stateless_revisions_are_unknown_to_handshakes(
    version: str, method: str
) -> None:
    assert (await ask(method, {}, version)).error["code"] == -32601


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "resources/subscribe", "logging/setLevel"]
)
async def test_methods_of_the_handshake_are_unknown_to_stateless_revisions(method: str) -> None:
    answer = await ask(method)
    assert (answer.status, answer.error["code"]) == (404, -32601)


@pytest.mark.parametrize("version", EVERY)
async def test_an_unknown_tool_is_a_wrong_parameter_everywhere(version: str) -> None:
    answer = await call("Search", version)
    assert (answer.error["code"], answer.error["message"]) == (-32602, "Unknown tool Search")
    assert "VectorSearch" in answer.error["data"]["tools"]
    assert answer.status == (400 if version == STATELESS else 200)


@pytest.mark.parametrize("version", EVERY)
async def test_an_unknown_cursor_is_refused(version: str) -> None:
    assert (await ask("tools/list", {"cursor": "2"}, version)).error["code"] == -32602


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("params", [{}, {"name": "VectorSearch", "arguments": [5]}])
async def test_a_malformed_call_lists_its_problems(version: str, params: dict) -> None:
    error = (await ask("tools/call", params, version)).error
    assert (error["code"], error["message"]) == (-32602, "Invalid params")
    assert error["data"]["details"]


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_the_name_of_a_tool_must_be_a_string(version: str) -> None:
    error = (await ask("tools/call", {"name": 5}, version)).error
    assert (error["code"], error["data"]) == (
        -32602,
        {"details": ["params.name is missing or wrong"]},
    )


@pytest.mark.parametrize("version", EVERY)
async def test_an_answer_has_text_and_the_same_object(version: str, suite_tools: None) -> None:
    result = (await call("test_simple_text", version)).result
    assert result["content"][0]["text"] == "This is a simple text response for testing."
    assert ("resultType" in result) is (version == STATELESS)


@pytest.mark.parametrize("version", EVERY)
@pytest.mark.parametrize("method", ["notifications/initialized", "notifications/cancelled", "x"])
async def test_a_notification_is_accepted_without_an_answer(version: str, method: str) -> None:
    headers = {} if version < "2025-06-18" else {"mcp_protocol_version": version}
    answer = await send({"jsonrpc": "2.0", "method": method, "params": {}}, **headers)
    assert (answer.status, answer.body) == (202, b"")


class TestTheHeadersOfAStatelessRequest:
    body = {
        "jsonrpc": "2.0",
        "id": "a",
        "method": "tools/call",
        "params": {"name": "ListIngestedRepositories", "arguments": {}, "_meta": META},
    }
    right = {
        "mcp_protocol_version": STATELESS,
        "mcp_method": "tools/call",
        "mcp_name": "ListIngestedRepositories",
    }

    @pytest.mark.parametrize(
        "changed",
        [
            {"mcp_protocol_version": ""},
            {"mcp_protocol_version": "2025-11-25"},
            {"mcp_protocol_version": f"{STATELESS},{STATELESS}"},
            {"mcp_method": ""},
            {"mcp_method": "tools/list"},
            {"mcp_method": "TOOLS/CALL"},
            {"mcp_name": ""},
            {"mcp_name": "VectorSearch"},
            {"mcp_name": "=?base64?VmVjdG9yU2VhcmNo?="},
            {"mcp_name": "=?base64?%%%?="},
            {"mcp_name": "=?base64?/w==?="},
        ],
    )
    async def test_they_must_match_the_message(self, changed: dict[str, str]) -> None:
        answer = await send(self.body, **(self.right | changed))
        assert (answer.status, answer.error["code"]) == (400, -32020)
        assert answer.json["id"] == "a"

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize(
        "name",
        [" ListIngestedRepositories ", "=?base64?TGlzdEluZ2VzdGVkUmVwb3NpdG9yaWVz?="],
    )
    async def test_surrounding_blanks_and_base64_are_accepted(self, name: str) -> None:
        assert (await send(self.body, **(self.right | {"mcp_name": name}))).status == 200

    @pytest.mark.parametrize("left_out", list(META))
    async def test_its_meta_must_be_complete(self, left_out: str) -> None:
        meta = {name: value for name, value in META.items() if name != left_out}
        params = self.body["params"] | {"_meta": meta}
        answer = await send(self.body | {"params": params}, **self.right)
        assert (answer.status, answer.error["code"]) == (400, -32602)
        assert left_out in answer.error["message"]

    @pytest.mark.parametrize("version", ["2026-01-01", "9", 'x"<b>'])
    async def test_an_unknown_revision_lists_the_supported_ones(self, version: str) -> None:
        meta = META | {f"{PREFIX}/protocolVersion": version}
        params = self.body["params"] | {"_meta": meta}
        headers = self.right | {"mcp_protocol_version": version}
        answer = await send(self.body | {"params": params}, **headers)
        assert (answer.status, answer.error["code"]) == (400, -32022)
        assert answer.error["data"] == {"supported": list(reversed(EVERY)), "requested": version}


@pytest.mark.parametrize("version", ["2026-01-01", "latest", ""])
async def test_an_unknown_revision_of_a_handshake_client_lists_the_supported_ones(
    version: str,
) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    answer = await send(ping, mcp_protocol_version=version)
    if not version:
        assert answer.result == {}
        return
    assert (answer.status, answer.error["code"]) == (400, -32022)
    assert "2025-11-25" in answer.error["data"]["supported"]
