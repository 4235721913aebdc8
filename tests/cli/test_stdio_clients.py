"""Official clients over stdio: every method answers as over HTTP. The real Codex finds a line."""

import base64
import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from tests.browser.product import Product, running
from tests.cli.bridge import COMMAND, HELLO, bridge, codex, end_server, environment
from tests.mcp.doors.clients import FILE, TEMPLATE
from tests.mcp.judges import PROGRAMS
from tests.mcp.speech import EVERY, STATELESS, headers_for, request
from tests.ports import free_ports
from tests.stand_ins.responses_scripts import OBEDIENT, outputs
from tests.stand_ins.responses_server import ResponsesStandIn, write_config
from tests.support.git import commit_all, init
from tests.support.ingested import SAMPLE, write_files
from tests.support.served import ingest_into
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.door

SEARCH = {"query": "retry backoff", "repository": "lighthouse"}
REFERENCE = {"type": "ref/resource", "uri": TEMPLATE}
OBEYING = "obedient"  # a model
METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ping", {}),
    ("tools/list", {}),
    ("tools/list", {"cursor": "nope"}),
    ("tools/call", {"name": "VectorSearch", "arguments": SEARCH}),
    ("tools/call", {"name": "ReadFile", "arguments": {"repository": "ünïcode", "path": "a"}}),
    ("tools/call", {"name": "Näme\n", "arguments": {}}),
    ("tools/call", {}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "explain", "arguments": {"path": "src/retry.py"}}),
    ("prompts/get", {"name": "nope"}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/listTemplates", {}),
    ("resources/read", {"uri": FILE}),
    ("resources/read", {"uri": "codeinfo://nope/ü"}),
    ("completion/complete", {"ref": REFERENCE, "argument": {"name": "path", "value": "ret"}}),
    ("tasks/get", {"taskId": "nope"}),
    ("server/discover", {}),
    ("nope", {}),
)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("stdio")) as served:
        ingest_into(served, write_files(served.repos / "lighthouse", SAMPLE))
        yield served


@pytest.mark.parametrize(
    ("endpoint", "version"),
    [
        *(("tools", version) for version in EVERY),
        *itertools.product(("chat", "agents"), ("2025-11-25", STATELESS)),
    ],
)
def test_every_method_answers_as_over_http(product: Product, endpoint: str, version: str) -> None:
    path = "/mcp" if endpoint == "tools" else f"/mcp/{endpoint}"
    with (
        bridge(product.data, "--endpoint", endpoint) as client,
        httpx.Client(base_url=product.url, timeout=PATIENCE) as http,
    ):
        hello = request("initialize", HELLO | {"protocolVersion": version}, "2025-11-25")
        greeted = http.post(path, json=hello)
        session = {"mcp-session-id": greeted.headers["mcp-session-id"]}
        common = {} if version == STATELESS else session | {"mcp-protocol-version": version}
        if version != STATELESS:
            client.send(json.dumps(hello).encode())
            assert client.read() == greeted.json()
            client.notify("notifications/initialized")
        for number, (method, params) in enumerate(METHODS, 2):
            body = request(method, params, version) | {"id": number}
            headers = common
            if version == STATELESS:
                headers = {k: encoded(str(v)) for k, v in headers_for(body, version).items()}
            expected = http.post(path, json=body, headers=headers).json()
            client.send(json.dumps(body).encode())
            assert client.read() == expected, method
        assert client.end() == 0


def encoded(value: str) -> str:
    if value.isascii() and "\n" not in value:
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


async def answers(client: Client) -> dict[str, Any]:
    """What the Python client gets from each of its methods."""
    ref = ResourceTemplateReference(type="ref/resource", uri=TEMPLATE)
    prompt = PromptReference(type="ref/prompt", name="explain")
    results = {
        "tools": await client.list_tools(),
        "prompts": await client.list_prompts(),
        "prompt": await client.get_prompt("explain", {"path": "src/retry.py"}),
        "resources": await client.list_resources(),
        "templates": await client.list_resource_templates(),
        "file": await client.read_resource(FILE),
        "completed": await client.complete(ref, {"name": "path", "value": "ret"}),
        "suggested": await client.complete(prompt, {"name": "path", "value": "ret"}),
        "search": await client.call_tool("VectorSearch", SEARCH),
    }
    with pytest.raises(MCPError) as caught:
        await client.read_resource("codeinfo://nope/")
    dumped = {name: result.model_dump() for name, result in results.items()}
    return dumped | {
        "refused": caught.value.error.model_dump(),
        "version": client.protocol_version,
        "capabilities": client.server_capabilities.model_dump(),
    }


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_python_client_gets_the_same_over_stdio(product: Product, mode: Any) -> None:
    parameters = StdioServerParameters(
        command=COMMAND[0], args=COMMAND[1:], env=environment(product.data)
    )
    async with Client(f"{product.url}/mcp", mode=mode) as client:
        expected = await answers(client)
    async with Client(parameters, mode=mode) as client:
        assert await answers(client) == expected
    assert expected["version"] == (STATELESS if mode == "auto" else "2025-11-25")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_progress_reaches_the_python_client(served: Product, mode: Any) -> None:
    parameters = StdioServerParameters(
        command=COMMAND[0], args=COMMAND[1:], env=environment(served.data)
    )
    steps: list[tuple[float, str | None]] = []

    async def report(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, message))

    async with Client(parameters, mode=mode) as client:
        result = await client.call_tool("test_tool_with_progress", {}, progress_callback=report)
    assert not result.is_error
    assert steps == [(0, "Counting"), (50, "Counting"), (100, "Counting")]


@pytest.mark.skipif(
    not (PROGRAMS / "node").exists() and os.environ.get("CI") != "true",
    reason="the clients are not installed: make conformance",
)
@pytest.mark.parametrize("sdk", ["1", "2"])
def test_a_typescript_client_gets_the_same_over_stdio(product: Product, sdk: str) -> None:
    script = PROGRAMS.parent.parent / "stdio.mjs"
    command = [str(PROGRAMS / "node"), str(script), sdk, f"{product.url}/mcp", *COMMAND]
    done = subprocess.run(
        command,
        env=environment(product.data),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    eras = json.loads(done.stdout)
    assert set(eras) == ({"legacy"} if sdk == "1" else {"legacy", "modern"})
    for answers in eras.values():
        assert answers["stdio"] == answers["http"]
        assert len(answers["stdio"]["tools"]["tools"]) > 5


def test_the_real_codex_finds_a_line_over_stdio(product: Product, tmp_path: Path) -> None:
    sent, output = what_codex_sends(tmp_path, environment(product.data), cwd=tmp_path)
    assert any("function_call_output" in body and "src/retry.py" in body for body in sent), output


def test_the_first_turn_of_the_real_codex_has_the_tools_while_the_server_starts(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    first = free_ports(3)
    ports = {"PORT": first, "MCP_PORT": first + 1, "AGENTS_MCP_PORT": first + 2}
    variables = environment(data, **{name: str(port) for name, port in ports.items()})
    sent, output = what_codex_sends(tmp_path, variables)
    assert "VectorSearch" in sent[0], output
    assert any("function_call_output" in body and "INGEST_REQUIRED" in body for body in sent), (
        output
    )
    end_server(data)


def test_the_real_codex_finds_what_it_has_just_written(tmp_path: Path) -> None:
    """Before, no line has it; its next call has it, with the commit that it stands on."""
    write = "printf 'def written_a_moment_ago(): ...\\n' >> src/retry.py"
    find = ["call", "Grep", {"pattern": "written_a_moment_ago", "repository": "lighthouse"}]
    with running(tmp_path, CODEINFO_WATCH="auto", CODEINFO_FRESH_WAIT_MS="10000") as product:
        folder = init(write_files(product.repos / "lighthouse", SAMPLE))
        commit_all(folder)
        ingest_into(product, folder)
        sent, output = what_codex_sends(
            tmp_path,
            environment(product.data),
            *("--dangerously-bypass-approvals-and-sandbox", "-m", OBEYING),
            json.dumps([find, ["own", "exec_command", {"cmd": write}], find]),
            cwd=folder,
        )
    before, _, after = outputs(json.loads(sent[-1]))
    assert "written_a_moment_ago():" not in before, output
    assert "written_a_moment_ago():" in after and "src/retry.py" in after, output
    assert "stale" not in after, output


def test_the_real_codex_asks_in_a_fresh_folder_and_gets_lines_of_it(tmp_path: Path) -> None:
    """Its folder is ingested meanwhile; another repository, which has such lines too, is not
    cited."""
    with running(tmp_path) as product:
        ingest_into(product, write_files(product.repos / "lighthouse", SAMPLE))
        fresh = init(write_files(product.repos / "buoy", {"src/tries.py": SAMPLE["src/retry.py"]}))
        commit_all(fresh)
        asked = ("-C", str(fresh), "-m", "tool", "How long does a retry wait?")
        sent, output = what_codex_sends(tmp_path, environment(product.data), *asked, cwd=fresh)
    (found,) = outputs(json.loads(sent[-1]))
    assert "src/tries.py" in found and "lighthouse" not in found, output
    assert "It is in `buoy/src/tries.py:1-18`." in output


def what_codex_sends(
    folder: Path, variables: dict[str, str], *asked: str, cwd: Path | None = None
) -> tuple[list[str], str]:
    """Ask the real Codex with `codeinfo mcp` in its configuration. Return the requests to its
    model, and what it printed.

    cwd: the folder in which it is started; it waits for the tools there, however slow the start is
    """
    home = folder / "codex"
    own = {name: variables[name] for name in variables if name not in os.environ}
    own |= {"CODEINFO_DATA_DIR": variables["CODEINFO_DATA_DIR"]}
    own |= {"PYTHONPATH": variables["PYTHONPATH"]}
    described = ", ".join(f"{name} = {json.dumps(value)}" for name, value in own.items())
    with ResponsesStandIn() as api:
        api.scripts[OBEYING] = OBEDIENT
        write_config(home, api.url)
        with (home / "config.toml").open("a") as config:
            config.write(f"""
[mcp_servers.codeinfo]
command = {json.dumps(COMMAND[0])}
args = {json.dumps(COMMAND[1:])}
env = {{ {described} }}
required = {"true" if cwd else "false"}
""")
        asked = "exec", "--skip-git-repo-check", *(asked or ("-m", "tool", "Where?"))
        env = variables | {"HOME": str(folder)}
        done = codex(*asked, home=home, folder=cwd or folder, env=env)
        return [json.dumps(one.body) for one in api.requests], done.stdout + done.stderr
