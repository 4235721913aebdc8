"""The page that tells other programs how to reach the MCP endpoints."""

import html
import json
import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.retrieval.conftest import Shelf, shelf
from tests.support.agents import make_agent

__all__ = ["shelf"]

pytestmark = [pytest.mark.django_db, pytest.mark.door]
CLIENTS = ("codex", "claude-code", "cursor", "vs-code", "lm-studio")
HERE = "http://testserver"


@pytest.fixture
def snippets(client: Client) -> Callable[..., list[str]]:
    """snippets("cursor", "question"): what the copy buttons of that page copy."""

    def read(of: str, endpoint: str = "search", **headers: str) -> list[str]:
        page = client.get("/connect", {"client": of, "endpoint": endpoint}, headers=headers)
        assert page.status_code == 200
        copied = re.findall(r'data-copy="([^"]*)"', page.content.decode())
        return [html.unescape(text) for text in copied]

    return read


def entry(text: str, key: str = "mcpServers") -> tuple[str, dict[str, Any]]:
    """The one server of a JSON configuration: its name and what is said of it."""
    ((name, configuration),) = json.loads(text)[key].items()
    return name, configuration


Snippets = Callable[..., list[str]]


def test_codex_gets_a_command_and_a_table(snippets: Snippets) -> None:
    command, table = snippets("codex")
    assert shlex.split(command) == ["codex", "mcp", "add", "codeinfo", "--url", f"{HERE}/mcp"]
    servers = tomllib.loads(table)["mcp_servers"]
    assert servers == {"codeinfo": {"url": f"{HERE}/mcp", "tool_timeout_sec": 600}}


def test_claude_code_gets_a_command_and_a_file(snippets: Snippets) -> None:
    command, file = snippets("claude-code")
    add = ["claude", "mcp", "add", "--transport", "http", "codeinfo", f"{HERE}/mcp"]
    assert shlex.split(command) == add
    assert entry(file) == ("codeinfo", {"type": "http", "url": f"{HERE}/mcp"})


def test_the_others_get_the_lines_of_their_files(snippets: Snippets) -> None:
    named = ("codeinfo", {"url": f"{HERE}/mcp"})
    assert [entry(text) for text in snippets("cursor")] == [named]
    assert [entry(text) for text in snippets("lm-studio")] == [named]
    (file,) = snippets("vs-code")
    assert entry(file, "servers") == ("codeinfo", {"type": "http", "url": f"{HERE}/mcp"})


@pytest.mark.parametrize("of", CLIENTS)
@pytest.mark.parametrize(("endpoint", "path"), [("question", "chat"), ("agents", "agents")])
def test_addresses_are_those_by_which_the_browser_came(
    snippets: Snippets, of: str, endpoint: str, path: str
) -> None:
    copied = "\n".join(snippets(of, endpoint, host="localhost:7777"))
    assert f"http://localhost:7777/mcp/{path}" in copied
    assert f"codeinfo-{endpoint}" in copied


def test_the_port_of_the_endpoint_is_shown(client: Client, configure: Callable[..., None]) -> None:
    configure(mcp_port=7001, agents_mcp_port=7002)
    page = client.get("/connect", headers={"host": "localhost:7777"}).content.decode()
    assert "http://localhost:7001/" in page
    assert "http://localhost:7002/" in page


def test_the_card_of_the_agents_shows_their_number(
    client: Client, configure: Callable[..., None], tmp_path: Path
) -> None:
    configure(agents_home=tmp_path)
    assert "No agents" in client.get("/connect").content.decode()
    make_agent(tmp_path, "one", "[codeinfo]\nprovider = 'builtin'\n")
    make_agent(tmp_path, "broken", "x = [")
    assert "<span>1 agent</span>" in client.get("/connect").content.decode()
    configure(agents_home=tmp_path / "nowhere")
    assert "folder cannot be read" in client.get("/connect").content.decode()


def test_each_client_sends_a_required_token_in_its_own_way(
    snippets: Snippets, configure: Callable[..., None]
) -> None:
    configure(mcp_token="the-secret")
    command, table = snippets("codex")
    assert command.endswith(" --bearer-token-env-var CODEINFO_MCP_TOKEN")
    assert 'bearer_token_env_var = "CODEINFO_MCP_TOKEN"' in table
    command, file = snippets("claude-code")
    assert command.endswith(' --header "Authorization: Bearer $CODEINFO_MCP_TOKEN"')
    assert header(file) == "Bearer ${CODEINFO_MCP_TOKEN}"
    assert header(snippets("cursor")[0]) == "Bearer ${env:CODEINFO_MCP_TOKEN}"
    assert header(snippets("lm-studio")[0]) == "Bearer YOUR_TOKEN"
    (file,) = snippets("vs-code")
    _, server = entry(file, "servers")
    assert server["headers"] == {"Authorization": "Bearer ${input:codeinfo-token}"}
    assert json.loads(file)["inputs"][0]["id"] == "codeinfo-token"


def header(text: str) -> str:
    return str(entry(text)[1]["headers"]["Authorization"])


@pytest.mark.parametrize("of", CLIENTS)
def test_the_token_itself_is_never_on_the_page(
    client: Client, configure: Callable[..., None], of: str
) -> None:
    configure(mcp_token="the-secret")
    page = client.get("/connect", {"client": of}).content.decode()
    assert "the-secret" not in page
    assert 'type="password"' in page


def test_an_unknown_choice_is_the_first(client: Client) -> None:
    odd = client.get("/connect", {"client": "<b>", "endpoint": "x"}).content.decode()
    assert 'id="client-codex"' in odd
    assert "<b>" not in odd


def test_an_empty_index_is_shown_with_a_link_to_ingest(client: Client, shelf: Shelf) -> None:
    assert "Nothing is ingested yet." in client.get("/connect").content.decode()
    shelf.root("one")
    page = client.get("/connect").content.decode()
    assert "Nothing is ingested yet." not in page
    assert "1 repository" in page


@pytest.mark.door
def test_the_question_endpoint_shows_whether_a_model_is_available(
    client: Client, configure: Callable[..., None]
) -> None:
    for provider in ("builtin", ""):
        configure(mcp_provider=provider)
        ready = client.get("/ui/site/question").content.decode()
        assert "Ready" in ready and "Search only" in ready
    configure(mcp_provider="codex")
    away = client.get("/ui/site/question").content.decode()
    assert "No model" in away
    assert "CODEINFO_MCP_PROVIDER" in away
