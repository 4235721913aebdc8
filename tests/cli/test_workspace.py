"""`codeinfo mcp` tells the server in which folder it was started, or the client's roots."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult, ListRootsResult, Root

from tests.browser.product import Product, running
from tests.cli.bridge import COMMAND, HELLO, Bridge, environment, started
from tests.support.ingested import SAMPLE, write_files
from tests.support.served import ingest_into

pytestmark = pytest.mark.door

CARGO = {"Cargo.toml": "[package]\n", "src/buoy.rs": "fn float_the_buoy() {}\n"}
GREP = {"name": "Grep", "arguments": {"pattern": "buoy|ship"}}
Start = Callable[..., AbstractContextManager[Bridge]]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("workspace")) as served:
        ingest_into(served, write_files(served.repos / "lighthouse", SAMPLE))
        yield served


@pytest.fixture
def project(product: Product, request: pytest.FixtureRequest) -> Path:
    """A folder of this test's own that is not ingested."""
    name = request.node.name.replace("[", "-").rstrip("]")
    return write_files(product.repos / name, CARGO)


@pytest.fixture
def start(product: Product) -> Start:
    """Start the bridge in a folder."""

    def start(cwd: Path | str, **variables: str) -> AbstractContextManager[Bridge]:
        return started(COMMAND, environment(product.data, **variables), cwd)

    return start


def greet(client: Bridge, **capabilities: Any) -> None:
    client.ask("initialize", HELLO | {"capabilities": capabilities})
    client.notify("notifications/initialized")


def reply(client: Bridge, method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Answer the bridge's request of this method, which comes next; its parameters."""
    message = client.read()
    assert message["method"] == method
    client.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())
    return dict(message["params"])


def repos(answer: dict[str, Any]) -> set[str]:
    return {row["repo"] for row in answer["result"]["structuredContent"]["results"]}


def test_a_call_is_about_the_folder_which_is_ingested_first(start: Start, project: Path) -> None:
    with start(project / "src") as client:
        # The folder of a program is not the top of the project: it has no manifest.
        greet(client)
        assert "not ingested" in client.ask("tools/call", GREP)["result"]["content"][0]["text"]
    with start(project) as client:
        greet(client)
        assert repos(client.ask("tools/call", GREP)) == {project.name}
    with start(project / "src") as client:
        greet(client)
        assert repos(client.ask("tools/call", GREP)) == {project.name}


def test_a_question_is_about_the_folder_too(project: Path, product: Product) -> None:
    question = {"question": "Where does the buoy float?", "provider": "builtin"}
    call = {"name": "codebase_question", "arguments": question}
    with started([*COMMAND, "--endpoint", "chat"], environment(product.data), project) as client:
        greet(client)
        answer = client.ask("tools/call", call)["result"]["structuredContent"]
    assert f"`{project.name}/src/buoy.rs:1" in answer["segments"][0]["text"]
    assert "workspace" not in answer


def test_the_roots_of_a_client_come_first_and_their_changes_count(
    start: Start, project: Path, product: Product
) -> None:
    lighthouse = {"uri": (product.repos / "lighthouse").as_uri(), "name": "lighthouse"}
    odd = write_files(product.repos / "mäßig, 100%", CARGO)
    with start(project) as client:
        greet(client, roots={"listChanged": True})
        reply(client, "roots/list", {"roots": [lighthouse]})
        assert repos(client.ask("tools/call", GREP)) == {"lighthouse"}
        client.notify("notifications/roots/list_changed")
        reply(client, "roots/list", {"roots": [{"uri": odd.as_uri()}, lighthouse, {"uri": "x:"}]})
        assert repos(client.ask("tools/call", GREP)) == {odd.name, "lighthouse"}
        client.notify("notifications/roots/list_changed")
        reply(client, "roots/list", {"roots": []})
        assert repos(client.ask("tools/call", GREP)) == {project.name}


def test_a_call_waits_for_the_roots(start: Start, project: Path, product: Product) -> None:
    with start(project) as client:
        greet(client, roots={})
        asked = client.read()
        client.begin("tools/call", GREP)
        roots = {"roots": [{"uri": (product.repos / "lighthouse").as_uri()}]}
        client.send(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": roots}).encode())
        assert repos(client.read()) == {"lighthouse"}


@pytest.mark.parametrize(
    "answer", [{"result": []}, {"result": {"roots": 7}}, {"error": {"code": 1, "message": "no"}}]
)
def test_a_client_that_refuses_its_roots_has_the_folder(
    answer: dict[str, Any], start: Start, product: Product
) -> None:
    with start(product.repos / "lighthouse") as client:
        greet(client, roots={})
        asked = client.read()
        client.send(json.dumps({"jsonrpc": "2.0", "id": asked["id"]} | answer).encode())
        client.send(json.dumps({"jsonrpc": "2.0", "id": "codeinfo-99", "result": {}}).encode())
        client.send(json.dumps({"jsonrpc": "2.0", "id": [], "result": {}}).encode())
        assert repos(client.ask("tools/call", GREP)) == {"lighthouse"}


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_the_user_is_asked_once(action: str, start: Start, project: Path) -> None:
    with start(project, CODEINFO_MCP_WORKSPACE="ask") as client:
        greet(client, elicitation={})
        client.begin("tools/call", GREP)
        asked = reply(client, "elicitation/create", {"action": action})
        assert str(project) in asked["message"]
        answer = client.read()
        if action == "accept":
            assert repos(answer) == {project.name}
        for _ in range(2):
            text = answer["result"]["content"][0]["text"]
            assert (f"codeinfo ingest {project}" in text) == (action != "accept")
            answer = client.ask("tools/call", GREP)


def test_what_the_user_agrees_to_is_the_folder_of_the_question(
    start: Start, project: Path, product: Product
) -> None:
    other = write_files(product.repos / "not-agreed-to", CARGO)
    with start(project, CODEINFO_MCP_WORKSPACE="ask") as client:
        greet(client, elicitation={}, roots={})
        reply(client, "roots/list", {"roots": [{"uri": project.as_uri()}]})
        client.begin("tools/call", GREP)
        asked = client.read()
        client.notify("notifications/roots/list_changed")
        reply(client, "roots/list", {"roots": [{"uri": other.as_uri()}]})
        yes = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}}
        client.send(json.dumps(yes).encode())
        assert repos(client.read()) == {project.name}


def test_a_variable_is_no_consent(start: Start, project: Path) -> None:
    with start(project, CODEINFO_MCP_WORKSPACE="yes") as client:
        greet(client)
        text = client.ask("tools/call", GREP)["result"]["content"][0]["text"]
    assert f"codeinfo ingest {project}" in text


def test_an_input_that_has_ended_is_not_asked(start: Start, project: Path) -> None:
    with start(project, CODEINFO_MCP_WORKSPACE="ask") as client:
        greet(client, elicitation={}, roots={})
        client.begin("tools/call", GREP)
        assert client.process.stdin
        client.process.stdin.close()
        messages = [client.read()]
        while "result" not in messages[-1]:
            messages.append(client.read())
        assert "codeinfo ingest" in messages[-1]["result"]["content"][0]["text"]
        assert client.process.wait(60) == 0


@pytest.mark.parametrize(("cwd", "mode"), [("", "off"), ("/", "auto")])
def test_without_a_folder_all_repositories_are_searched(
    cwd: str, mode: str, start: Start, project: Path
) -> None:
    with start(cwd or project, CODEINFO_MCP_WORKSPACE=mode) as client:
        greet(client, roots={}) if mode == "off" else greet(client)
        answer = client.ask("tools/call", GREP)
    assert project.name not in repos(answer) and "lighthouse" in repos(answer)
    assert "not ingested" not in answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_the_python_client_asks_its_user(
    mode: Any, action: Any, project: Path, product: Product
) -> None:
    asked = []

    async def ask(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

    variables = environment(product.data, CODEINFO_MCP_WORKSPACE="ask")
    parameters = StdioServerParameters(
        command=COMMAND[0], args=COMMAND[1:], env=variables, cwd=project
    )
    async with Client(parameters, mode=mode, elicitation_callback=ask) as client:
        for _ in range(2):
            answer = await client.call_tool("Grep", GREP["arguments"])
            found = {row["repo"] for row in answer.structured_content["results"]}
            assert (found == {project.name}) == (action == "accept")
    (text,) = asked
    assert str(project) in text


async def test_the_python_client_tells_its_roots(project: Path, product: Product) -> None:
    async def roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=(product.repos / "lighthouse").as_uri())])

    parameters = StdioServerParameters(
        command=COMMAND[0], args=COMMAND[1:], env=environment(product.data), cwd=project
    )
    for mode, expected in (("legacy", "lighthouse"), ("auto", project.name)):
        async with Client(parameters, mode=mode, list_roots_callback=roots) as client:
            answer = await client.call_tool("Grep", GREP["arguments"])
        assert {row["repo"] for row in answer.structured_content["results"]} == {expected}
