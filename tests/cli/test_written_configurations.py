"""What `codeinfo install` writes is what clients start: the official ones, and the real Codex.

They start it in a folder of somebody else's, of which nothing may be run (tests/cli/hostile.py).

Each file is read as its client reads it: its place, key and form are written here again, from the
clients' documentation.
"""

import html
import json
import os
import re
import subprocess
import tomllib
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
import yaml
from mcp import Client, StdioServerParameters

from codeinfo_cli.clients.table import CLIENTS
from tests.browser.product import Product, running
from tests.cli.bridge import HELLO, codex, started
from tests.cli.command import CODEINFO
from tests.cli.hostile import Hostile, hostile
from tests.mcp.judges import PROGRAMS
from tests.stand_ins.responses_server import ResponsesStandIn, write_config
from tests.support.ingested import SAMPLE, write_files
from tests.support.served import ingest_into
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.door

SEARCH = {"query": "retry backoff", "repository": "lighthouse"}


@dataclass(frozen=True)
class Start:
    """What a client starts."""

    command: str
    args: list[str]
    env: dict[str, str]


def usual(entry: dict[str, Any]) -> Start:
    return Start(entry["command"], entry["args"], entry.get("env", {}))


def of_opencode(entry: dict[str, Any]) -> Start:
    assert (entry["type"], entry["enabled"]) == ("local", True)
    command, *args = entry["command"]
    return Start(command, args, entry.get("environment", {}))


def of_goose(entry: dict[str, Any]) -> Start:
    assert (entry["type"], entry["enabled"], entry["name"]) == ("stdio", True, "codeinfo")
    return Start(entry["cmd"], entry["args"], entry["envs"])


CODE = ".config/{}/User/mcp.json"
ROO = ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"
Form = tuple[str, Callable[[str], Any], str, Callable[[dict[str, Any]], Start]]
FORMS: dict[str, Form] = {
    "claude-code": (".claude.json", json.loads, "mcpServers", usual),
    "codex": (".codex/config.toml", tomllib.loads, "mcp_servers", usual),
    "cursor": (".cursor/mcp.json", json.loads, "mcpServers", usual),
    "vs-code": (".config/Code/User/mcp.json", json.loads, "servers", usual),
    "lm-studio": (".lmstudio/mcp.json", json.loads, "mcpServers", usual),
    "gemini-cli": (".gemini/settings.json", json.loads, "mcpServers", usual),
    "opencode": (".config/opencode/opencode.json", json.loads, "mcp", of_opencode),
    "zed": (".config/zed/settings.json", json.loads, "context_servers", usual),
    "windsurf": (".codeium/windsurf/mcp_config.json", json.loads, "mcpServers", usual),
    "copilot-cli": (".copilot/mcp-config.json", json.loads, "mcpServers", usual),
    "cline": (".cline/data/settings/cline_mcp_settings.json", json.loads, "mcpServers", usual),
    "kiro": (".kiro/settings/mcp.json", json.loads, "mcpServers", usual),
    "junie": (".junie/mcp/mcp.json", json.loads, "mcpServers", usual),
    "claude-desktop": (
        ".config/Claude/claude_desktop_config.json",
        json.loads,
        "mcpServers",
        usual,
    ),
    "amp": (".config/amp/settings.json", json.loads, "amp.mcpServers", usual),
    "goose": (".config/goose/config.yaml", yaml.safe_load, "extensions", of_goose),
    "continue": (".continue/mcpServers/codeinfo.json", json.loads, "mcpServers", usual),
    "qwen-code": (".qwen/settings.json", json.loads, "mcpServers", usual),
    "crush": (".config/crush/crush.json", json.loads, "mcp", usual),
    "roo-code": (ROO, json.loads, "mcpServers", usual),
    "kilo-code": (".config/kilo/kilo.jsonc", json.loads, "mcp", of_opencode),
    "antigravity": (".gemini/config/mcp_config.json", json.loads, "mcpServers", usual),
    "vs-code-insiders": (CODE.format("Code - Insiders"), json.loads, "servers", usual),
    "vscodium": (CODE.format("VSCodium"), json.loads, "servers", usual),
}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("written")) as served:
        ingest_into(served, write_files(served.repos / "lighthouse", SAMPLE))
        yield served


@dataclass(frozen=True)
class User:
    """A home folder without clients; `data` is the data folder of a running server."""

    home: Path
    data: Path

    def run(self, *arguments: str) -> None:
        """Run a verb, as its user types it."""
        done = subprocess.run(
            [CODEINFO, *arguments],
            env=self.variables | {"CODEINFO_DATA_DIR": str(self.data)},
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    @property
    def variables(self) -> dict[str, str]:
        """What a client hands on to the programs that it starts: of codeinfo nothing."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.home)}

    def start_of(self, client: str) -> Start:
        """What a client starts, by its configuration."""
        file, parse, key, start = FORMS[client]
        return start(parse((self.home / file).read_text())[key]["codeinfo"])


@pytest.fixture
def user(product: Product, tmp_path: Path) -> User:
    return User(tmp_path, product.data)


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every file and folder below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    """The folder that the client has open."""
    return hostile(tmp_path_factory.mktemp("open"))


@pytest.mark.parametrize("client", [client.id for client in CLIENTS])
def test_what_install_wrote_answers_and_runs_nothing_of_the_open_folder(
    user: User, client: str, workspace: Hostile
) -> None:
    user.run("install", client, "--yes")
    answers_in(workspace, user.start_of(client), user)
    user.run("uninstall", client, "--yes")
    assert tree(user.home) == {}


def answers_in(workspace: Hostile, start: Start, user: User) -> None:
    """Start an entry in a hostile folder; it finds a line, and opens no file there."""
    variables = workspace.variables(user.variables) | start.env
    with (
        workspace.watched(),
        started([start.command, *start.args], variables, workspace.path) as server,
    ):
        answer = server.ask("initialize", HELLO)
        assert answer["result"]["serverInfo"]["name"] == "codeinfo"
        server.notify("notifications/initialized")
        assert "VectorSearch" in json.dumps(server.ask("tools/list"))
        found = server.ask("tools/call", {"name": "VectorSearch", "arguments": SEARCH})
        assert "src/retry.py" in json.dumps(found)
        assert server.end() == 0
    assert (workspace.ran, workspace.opened) == ([], set())


@pytest.mark.parametrize(
    ("client", "mode"), [("claude-code", "legacy"), ("cursor", "auto"), ("vs-code", "auto")]
)
async def test_the_python_client_finds_a_line(
    user: User, client: str, mode: Any, workspace: Hostile
) -> None:
    user.run("install", client, "--yes")
    start = user.start_of(client)
    # The client hands HOME, PATH and the like on; all else must be in the entry.
    parameters = StdioServerParameters(
        command=start.command, args=start.args, env=start.env, cwd=workspace.path
    )
    async with Client(parameters, mode=mode) as connected:
        names = {tool.name for tool in (await connected.list_tools()).tools}
        found = await connected.call_tool("VectorSearch", SEARCH)
    assert {"VectorSearch", "Grep", "Context"} <= names
    assert not found.is_error and "src/retry.py" in found.model_dump_json()
    assert workspace.ran == []


@pytest.mark.skipif(
    not (PROGRAMS / "node").exists() and os.environ.get("CI") != "true",
    reason="the clients are not installed: make conformance",
)
@pytest.mark.parametrize(
    ("client", "sdk"), [("claude-code", "1"), ("cursor", "2"), ("vs-code", "2")]
)
def test_a_typescript_client_finds_a_line(
    product: Product, user: User, client: str, sdk: str, workspace: Hostile
) -> None:
    user.run("install", client, "--yes")
    start = user.start_of(client)
    script = PROGRAMS.parent.parent / "stdio.mjs"
    done = subprocess.run(
        [PROGRAMS / "node", script, sdk, f"{product.url}/mcp", start.command, *start.args],
        env=workspace.variables(user.variables) | start.env,
        cwd=workspace.path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for answers in json.loads(done.stdout).values():
        assert len(answers["stdio"]["tools"]["tools"]) > 5
        assert "src/retry.py" in json.dumps(answers["stdio"]["search"])
    assert workspace.ran == []


@pytest.mark.parametrize("client", ["cursor", "vs-code"])
def test_a_link_of_the_connect_page_starts_what_runs_nothing_of_the_open_folder(
    product: Product, user: User, client: str, workspace: Hostile
) -> None:
    page = httpx.get(f"{product.url}/connect", params={"client": client}, timeout=PATIENCE).text
    (address,) = re.findall(r'href="((?:vscode|cursor):[^"]+)"', page)
    query = unquote(html.unescape(address).partition("?")[2])
    text = query if client == "vs-code" else b64decode(query.partition("&config=")[2]).decode()
    answers_in(workspace, usual(json.loads(text)), user)


def test_the_real_codex_starts_what_install_wrote(user: User, workspace: Hostile) -> None:
    folder = user.home / ".codex"
    variables = user.variables | {"PYTHONPATH": ":."}
    run = partial(codex, home=folder, folder=workspace.path, env=variables)
    with ResponsesStandIn() as api:
        write_config(folder, api.url)
        (folder / "AGENTS.md").write_text("# Mine\n\nBe brief.")
        files = {path: path.read_bytes() for path in sorted(folder.iterdir())}
        user.run("install", "codex", "--yes")
        read = json.loads(run("mcp", "get", "codeinfo", "--json").stdout)
        assert read["enabled"] and read["transport"]["command"] == user.start_of("codex").command
        # On a loaded machine Codex would ask its model before the server has answered.
        waits = "-c", "mcp_servers.codeinfo.required=true"
        done = run("exec", *waits, "--skip-git-repo-check", "-m", "tool", "Where?")
        sent = [json.dumps(one.body) for one in api.requests]
    # The model got the tools, the instructions and the line.
    assert any("function_call_output" in body and "src/retry.py" in body for body in sent), (
        done.stdout + done.stderr
    )
    assert all("Be brief." in body and "Cite what you use as" in body for body in sent)
    assert workspace.ran == []
    user.run("uninstall", "codex", "--yes")
    assert {path: path.read_bytes() for path in files} == files
