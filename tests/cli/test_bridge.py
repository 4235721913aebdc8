"""`codeinfo mcp`, as a client sees it: lines on standard input and output."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.core.system import posix
from codeinfo_cli import server
from codeinfo_cli.bridge.answers import MORE_TOOLS, TABLE, list_of, result_of, stored_answer
from codeinfo_cli.bridge.messages import parse
from tests.browser.product import Product
from tests.cli.bridge import COMMAND, HELLO, bridge, end_server, environment
from tests.cli.capabilities import PATHS, asked, listed, table
from tests.cli.capabilities import served as answer_of
from tests.house.sources import HOME
from tests.mcp.speech import BOTH, EVERY, META, STATELESS, headers_for, request
from tests.ports import free_ports, taken
from tests.support.waiting import PATIENCE, wait_until

MODERN = {"_meta": META}
WAIT = {"name": "wait", "arguments": {}}


@pytest.mark.django_db
@pytest.mark.parametrize("version", [*EVERY, "1999-01-01"])
@pytest.mark.parametrize("endpoint", PATHS)
def test_the_stored_handshake_is_the_servers(endpoint: str, version: str) -> None:
    assert json.loads(TABLE.read_text()) == table()
    body = asked(version)
    assert result_of(endpoint, version, body["method"]) == answer_of(endpoint, version)


@pytest.mark.django_db
@pytest.mark.parametrize("version", EVERY)
def test_the_stored_list_of_tools_is_the_servers(version: str) -> None:
    assert list_of("tools", version) == listed("tools", version)


def test_a_list_that_may_differ_is_left_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    message = parse(json.dumps(request("tools/list", version="2025-11-25")).encode())
    assert stored_answer("tools", message, "2025-11-25")
    assert stored_answer("tools", message) is None  # before the handshake
    assert stored_answer("chat", message, "2025-11-25") is None
    with_cursor = request("tools/list", {"cursor": "x"}, version="2025-11-25")
    assert stored_answer("tools", parse(json.dumps(with_cursor).encode()), "2025-11-25") is None
    monkeypatch.setenv(MORE_TOOLS, "1")
    assert stored_answer("tools", message, "2025-11-25") is None


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A data folder without a server. What is started for it is stopped at the end."""
    folder = tmp_path / "data"
    yield folder
    end_server(folder)


def ports() -> dict[str, str]:
    first = free_ports(3)
    return {"PORT": str(first), "MCP_PORT": str(first + 1), "AGENTS_MCP_PORT": str(first + 2)}


@pytest.mark.door
@pytest.mark.parametrize("endpoint", PATHS)
def test_the_handshake_needs_no_server_and_a_failed_start_is_told(
    data: Path, endpoint: str
) -> None:
    with bridge(data, "--endpoint", endpoint, INGEST_MAX_FILE_BYTES="many") as client:
        result = client.shake_hands()["result"]
        assert result == result_of(endpoint, "2025-11-25", "initialize")
        if endpoint == "tools":
            assert client.ask("tools/list")["result"] == list_of(endpoint, "2025-11-25")
        for _ in range(2):
            error = client.ask("tools/call", {"name": "Grep"})["error"]
            assert error["data"]["code"] == "SERVER_UNAVAILABLE"
            assert "INGEST_MAX_FILE_BYTES" in error["message"]
        discovered = client.ask("server/discover", MODERN)["result"]
        assert discovered == result_of(endpoint, STATELESS, "server/discover")
        assert client.end() == 0


@pytest.mark.door
def test_the_first_answers_need_no_http(data: Path) -> None:
    """Real clients ask for the tools in their first second: nothing slow is imported before."""
    with bridge(data, PYTHONPROFILEIMPORTTIME="1", INGEST_MAX_FILE_BYTES="many") as client:
        client.shake_hands()
        assert client.ask("tools/list")["result"]["tools"]
        assert client.end() == 0
        assert client.process.stderr
        lines = client.process.stderr.read().decode().splitlines()
    imported = {line.rpartition("|")[2].strip() for line in lines}
    assert "codeinfo_cli.bridge.relay" in imported
    assert not imported & {"h11", "httpx", "http.client", "django", "rich", "tomlkit"}


@pytest.mark.door
def test_what_waits_for_the_start_is_answered_and_the_server_ends_with_its_client(
    data: Path,
) -> None:
    with bridge(data, **ports()) as client:
        client.begin("initialize", HELLO)
        client.notify("notifications/initialized")
        client.begin("tools/list")
        client.begin("nope")
        client.begin("tools/call", {"name": "ListIngestedRepositories", "arguments": {}})
        answers = {message["id"]: message for message in (client.read() for _ in range(4))}
        assert len(answers[2]["result"]["tools"]) > 5
        assert answers[3]["error"]["code"] == -32601
        assert answers[4]["result"]["structuredContent"] == {"repos": []}
        assert server.running(data)
        assert client.end() == 0
        assert client.process.stderr
        assert client.process.stderr.read() == b""
    wait_until(lambda: server.running(data) is None)
    wait_until(lambda: not (data / "server.json").exists())


@pytest.mark.door
def test_input_that_ends_at_once_is_answered(data: Path) -> None:
    asked = [request("tools/list", version="2025-11-25"), request("ping", version="2025-11-25")]
    text = "\n".join(json.dumps(one | {"id": n}) for n, one in enumerate(asked))
    done = subprocess.run(
        COMMAND,
        env=environment(data, **ports()),
        input=text.encode(),
        capture_output=True,
        check=True,
        timeout=120,
    )
    assert {json.loads(line)["id"] for line in done.stdout.splitlines()} == {0, 1}


# A client that is killed, in a process of its own: the bridge notices without a word from it.
CLIENT = """
import subprocess, sys, time
bridge = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(bridge.pid, flush=True)
bridge.stdin.write(sys.stdin.readline().encode()); bridge.stdin.flush()
print(bridge.stdout.readline().decode().strip(), flush=True)
bridge.stdin.write(sys.stdin.readline().encode()); bridge.stdin.flush()
sys.stdin.readline()
"""


@pytest.mark.kill
def test_a_killed_client_leaves_neither_bridge_nor_call(served: Product) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, *COMMAND],
        env=environment(served.data),
        cwd=HOME,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as client:
        assert client.stdin and client.stdout
        pid = int(client.stdout.readline())
        for method, params in (("initialize", HELLO), ("tools/call", WAIT)):
            message = request(method, params, "2025-11-25") | {"id": method}
            client.stdin.write(json.dumps(message) + "\n")
            client.stdin.flush()
            if method == "initialize":
                assert "result" in json.loads(client.stdout.readline())
        wait_until(lambda: bool(waiting(served)))
        client.kill()
    wait_until(lambda: not Path(f"/proc/{pid}").exists() if sys.platform == "linux" else True)
    wait_until(lambda: not waiting(served))


def waiting(product: Product) -> list[str]:
    """The calls of the tool `wait` that are under way."""
    body = request("tools/call", {"name": "who_waits"})
    headers = {"accept": BOTH, **headers_for(body, STATELESS)}
    answer = httpx.post(f"{product.url}/mcp", json=body, headers=headers, timeout=PATIENCE).json()
    found: list[str] = answer["result"]["structuredContent"]["waiting"]
    return found


@pytest.mark.door
@pytest.mark.parametrize("meta", [{}, MODERN], ids=["handshake", "stateless"])
@pytest.mark.parametrize("streams", [False, True], ids=["object", "stream"])
def test_a_cancelled_call_ends_without_an_answer(
    served: Product, meta: dict[str, Any], streams: bool
) -> None:
    wait_until(lambda: not waiting(served))
    with bridge(served.data) as client:
        client.shake_hands()
        params = {**WAIT, **json.loads(json.dumps(meta))}
        if streams:
            params.setdefault("_meta", {})["progressToken"] = "p"
        id = client.begin("tools/call", params)
        if streams:
            progress = client.read()
            assert progress["method"] == "notifications/progress"
            assert progress["params"]["message"] == "Waiting"
        wait_until(lambda: bool(waiting(served)))
        client.notify("notifications/cancelled", requestId=str(id))  # another id
        client.notify("notifications/cancelled", requestId=id)
        wait_until(lambda: not waiting(served))
        # Progress may be under way; the next answer is that of another request.
        last = client.begin("ping")
        while (message := client.read()).get("id") is None:
            assert message["method"] == "notifications/progress"
        assert message == {"jsonrpc": "2.0", "id": last, "result": {}}


HOSTILE = (
    (b"{bad", None, -32700),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "\xff"}', None, -32700),
    (b"[" * 100_000, None, -32700),
    (b'[{"jsonrpc": "2.0", "id": 7, "method": "ping"}]', None, -32600),
    (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', None, -32600),
    (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', None, -32600),
    (b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}', 7, -32600),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": []}', 7, -32602),
    (b'{"jsonrpc": "2.0", "id": 7, "method": 3}', 7, -32600),
    (b"7", None, -32600),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "x": "' + b"x" * 2**20 + b'"}', 7, -32600),
    (b"x" * 17 * 2**20, None, -32600),
)


@pytest.mark.door
def test_lines_that_are_no_messages_are_answered_and_the_next_is_served(served: Product) -> None:
    with bridge(served.data) as client:
        client.shake_hands()
        for line, id, code in HOSTILE:
            client.send(line)
            answer = client.read()
            assert (answer["id"], answer["error"]["code"]) == (id, code), line[:80]
        # Without an answer: responses, blank lines, notifications that nobody knows.
        client.send(b'{"jsonrpc": "2.0", "id": 1, "result": {}}')
        client.send(b"  \r")
        client.notify("notifications/nope")
        client.send(b'{"jsonrpc": "2.0", "id": "crlf", "method": "ping"}\r')
        assert client.read() == {"jsonrpc": "2.0", "id": "crlf", "result": {}}
        assert client.end() == 0


@pytest.mark.door
def test_requests_are_bounded_and_ids_are_unique_while_they_are_used(served: Product) -> None:
    with bridge(served.data) as client:
        client.shake_hands()
        ids = [client.begin("tools/call", WAIT) for _ in range(100)]
        assert client.ask("ping")["error"]["data"]["code"] == "TOO_MANY_REQUESTS"
        wait_until(lambda: len(waiting(served)) > 0)
        client.notify("notifications/cancelled", requestId=ids[1])
        again = json.dumps({"jsonrpc": "2.0", "id": ids[0], "method": "ping"}).encode()
        client.send(again)
        assert client.read()["error"]["data"]["code"] == "DUPLICATE_ID"
        client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(60) == 0
    wait_until(lambda: not waiting(served))


@pytest.mark.kill
def test_a_server_that_dies_is_told_to_each_request_and_started_again(data: Path) -> None:
    settings = ports() | {"DJANGO_SETTINGS_MODULE": "tests.mcp.settings"}
    with bridge(data, **settings) as client:
        client.shake_hands()
        assert "result" in client.ask("ping")
        first = server.running(data)
        assert first
        plain = client.begin("tools/call", WAIT)
        streamed = client.begin("tools/call", {**WAIT, "_meta": {"progressToken": "p"}})
        assert client.read()["method"] == "notifications/progress"
        os.kill(first.pid, signal.SIGKILL)
        failed = (client.read(), client.read())
        assert {message["id"] for message in failed} == {plain, streamed}
        assert {message["error"]["code"] for message in failed} == {-32603}
        # In the session of the first server, as a session has no state.
        assert "result" in client.ask("ping")
        second = server.running(data)
        assert second
        assert second.pid != first.pid
        assert client.end() == 0


@pytest.mark.kill
def test_after_the_end_of_the_input_a_killed_server_is_not_started_again(data: Path) -> None:
    with bridge(data, **ports()) as client:
        client.shake_hands()
        assert "result" in client.ask("ping")
        address = server.running(data)
        assert address
        with posix.open_private(data / "server.start") as starting:
            posix.lock(starting)  # the next start waits
            os.kill(address.pid, signal.SIGKILL)
            assert "error" in client.ask("ping")
            waiting = client.begin("ping")
            assert client.process.stdin
            client.process.stdin.close()
            assert client.read()["id"] == waiting
            assert client.process.wait(60) == 0


@pytest.mark.door
def test_the_server_of_a_bridge_takes_a_free_port_if_the_named_one_is_taken(data: Path) -> None:
    named = ports()
    with taken(int(named["PORT"])), bridge(data, **named) as client:
        client.shake_hands()
        assert "result" in client.ask("ping")
        address = server.running(data)
        assert address
        assert f":{named['PORT']}" not in address.url


@pytest.mark.door
def test_a_bridge_with_a_closed_output_ends(served: Product) -> None:
    with bridge(served.data) as client:
        assert client.process.stdout
        client.process.stdout.close()
        client.begin("initialize", HELLO)
        assert client.process.wait(60) == 0
