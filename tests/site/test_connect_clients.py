"""The clients on the Connect page: their last calls, and the buttons that add codeinfo to them."""

import base64
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.core.config import config
from apps.mcp import client_calls
from tests.mcp.speech import EVERY, META, PREFIX, STATELESS, ask, headers_for, request, send

pytestmark = [pytest.mark.django_db, pytest.mark.door]
HOSTILE = '<img src=x onerror="alert(1)">\u202e\x00'
INFO = f"{PREFIX}/clientInfo"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configure: Any) -> Path:
    """A home folder with Cursor, Codex and nothing else, and a data folder without calls."""
    home = tmp_path / "home"
    (home / ".cursor").mkdir(parents=True)
    (home / ".codex").mkdir()
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", "/nowhere")
    data = tmp_path / "own-data"
    data.mkdir()
    configure(data_dir=data)
    monkeypatch.setattr(client_calls, "unwritten", {})
    return home


@pytest.fixture
def page(client: Client) -> Callable[..., Any]:
    """page("cursor?action=install", **form): as the browser of this machine's user."""

    def send(address: str = "", form: dict[str, str] | None = None, **more: Any) -> Any:
        path = f"/ui/site/clients/{address}".rstrip("/")
        more = {"HTTP_HOST": "127.0.0.1:5010", "REMOTE_ADDR": "127.0.0.1"} | more
        response: Any = (
            client.get(path, **more) if form is None else client.post(path, form, **more)
        )
        return response  # type: ignore[no-any-return]

    return send


Page = Callable[..., Any]


def text_of(response: Any) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", response.content.decode()))


def digest_of(response: Any) -> str:
    found = re.search(r'name="digest" value="(\w+)"', response.content.decode())
    assert found
    return found[1]


def test_a_button_shows_the_change_and_then_makes_it(page: Page, machine: Path) -> None:
    listed = text_of(page())
    assert "Add to Cursor…" in listed
    assert "Add to Codex…" in listed
    assert "Zed" not in listed
    shown = page("cursor?action=install")
    assert '+    "codeinfo": {' in text_of(shown)
    assert not (machine / ".cursor/mcp.json").exists()
    form = {"action": "install", "digest": digest_of(shown)}
    assert "codeinfo was added to Cursor." in text_of(page("cursor", form))
    entry = json.loads((machine / ".cursor/mcp.json").read_text())["mcpServers"]["codeinfo"]
    assert entry["args"][-1] == "mcp"
    assert entry["env"]["CODEINFO_DATA_DIR"] == str(config().data_dir)
    removal = page("cursor?action=uninstall")
    page("cursor", {"action": "uninstall", "digest": digest_of(removal)})
    assert list((machine / ".cursor").iterdir()) == []


def test_an_entry_that_runs_the_open_folder_is_replaced_by_a_button(
    page: Page, machine: Path
) -> None:
    config_file = machine / ".cursor/mcp.json"
    old = {"command": "/p/python", "args": ["-m", "codeinfo_cli", "mcp"]}
    config_file.write_text(json.dumps({"mcpServers": {"codeinfo": old}}))
    listed = text_of(page())
    assert "Its entry lets a repository that you open there run its own code." in listed
    assert "Replace in Cursor…" in listed and "Remove from Cursor…" not in listed
    digest = digest_of(page("cursor?action=install"))
    page("cursor", {"action": "install", "digest": digest})
    entry = json.loads(config_file.read_text())["mcpServers"]["codeinfo"]
    assert entry["args"][:2] == ["-E", "-P"]
    listed = text_of(page())
    assert "run its own code" not in listed and "Remove from Cursor…" in listed


def test_a_change_that_was_not_shown_is_not_made(page: Page, machine: Path) -> None:
    config_file = machine / ".cursor/mcp.json"
    assert "This is the change now" in text_of(page("cursor", {"action": "install"}))
    digest = digest_of(page("cursor?action=install"))
    config_file.write_text('{"mine": 1}')
    again = page("cursor", {"action": "install", "digest": digest})
    assert "This is the change now" in text_of(again)
    assert config_file.read_text() == '{"mine": 1}'
    config_file.write_text("{broken")
    for response in (page("cursor?action=install"), page()):
        assert "mcp.json is damaged" in text_of(response)
    page("cursor", {"action": "install", "digest": digest})
    assert config_file.read_text() == "{broken"


def test_only_a_browser_on_this_machine_may(
    page: Page, machine: Path, configure: Callable[..., None], client: Client
) -> None:
    for more in (
        {"HTTP_HOST": "localhost", "REMOTE_ADDR": "192.0.2.1"},
        {"HTTP_HOST": "testserver"},
        {"HTTP_X_FORWARDED_FOR": "192.0.2.1"},
        {"HTTP_ORIGIN": "http://evil.example"},
    ):
        if "HTTP_ORIGIN" not in more:
            assert "Add to" not in text_of(page(**more))
        for form in (None, {"action": "install"}):
            refused = page("cursor", form, **more)
            assert (refused.status_code, refused.json()["code"]) == (403, "FORBIDDEN")
    configure(loopback_users="any")
    assert page("cursor?action=install").status_code == 403
    configure(require_login=True)
    client.force_login(User.objects.create_user("ada"))
    assert page("cursor?action=install").status_code == 403
    client.force_login(User.objects.create_user("staff", is_staff=True))
    assert page("cursor?action=install").status_code == 200
    assert page("emacs").status_code == 404
    strict = Client(enforce_csrf_checks=True, HTTP_HOST="localhost")
    strict.force_login(User.objects.get(username="staff"))
    assert strict.post("/ui/site/clients/cursor", {"action": "install"}).status_code == 403
    assert not (machine / ".cursor/mcp.json").exists()


@pytest.mark.parametrize("version", EVERY)
async def test_the_last_call_of_a_client_is_known_by_the_name_it_gives(version: str) -> None:
    info = {"name": "cursor-vscode", "version": "1"}
    headers: dict[str, str] = {}
    meta: dict[str, Any] = {"_meta": META | {INFO: info}} if version == STATELESS else {}
    if version != STATELESS:
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        greeted = await ask("initialize", hello, version)
        headers["mcp_session_id"] = greeted.headers["mcp-session-id"]
        (call,) = client_calls.last_calls()
        assert (call.name, call.call) == ("cursor-vscode", "initialize")
    params = {"name": "ListIngestedRepositories", "arguments": {}, **meta}
    await ask("tools/call", params, version, **headers)
    (call,) = client_calls.last_calls()
    assert (call.name, call.endpoint, call.call) == (
        "cursor-vscode",
        "codeinfo",
        "ListIngestedRepositories",
    )
    # The threads of codeinfo's own Codex are not clients of the user.
    own = request("tools/list", {"_meta": META | {INFO: {"name": "codex"}}})
    await send(own, path="/mcp?tool=VectorSearch", **headers_for(own, STATELESS))
    assert [one.name for one in client_calls.last_calls()] == ["cursor-vscode"]


def test_the_call_of_a_client_is_not_that_of_one_whose_name_begins_so(page: Page) -> None:
    client_calls.record("Visual Studio Code - Insiders", "codeinfo", "initialize")
    content = page().content.decode()
    assert "<h3>VS Code Insiders</h3><p>Last call" in content
    assert "<h3>VS Code</h3><p>Last call" not in content


def test_calls_are_bounded_stored_and_their_names_escaped(page: Page) -> None:
    folder = config().data_dir
    for number in range(200):
        client_calls.record(client_calls.name_of({"name": f"client {number}"}), "codeinfo", "x")
    client_calls.record(client_calls.name_of({"name": HOSTILE * 100}), "codeinfo", "y" * 1000)
    client_calls.write(folder)
    assert client_calls.unwritten == {}
    calls = client_calls.last_calls()
    assert len(calls) == client_calls.MAX_CLIENTS
    assert len(calls[0].name) <= client_calls.MAX_NAME
    assert len(calls[0].call) == client_calls.MAX_NAME
    assert (folder / client_calls.FILE).stat().st_mode & 0o777 == 0o600
    content = page().content.decode()
    assert "&lt;img src=x" in content
    assert "<img" not in content
    assert "\u202e" not in content
    (folder / client_calls.FILE).write_text("[{broken")
    assert client_calls.last_calls() == []
    for wrong in (None, [], {}, {"name": 7}, {"name": " \x00"}):
        assert client_calls.name_of(wrong) == ""


def test_links_open_cursor_and_vs_code_with_an_entry(client: Client) -> None:
    def link(name: str, host: str, endpoint: str = "search") -> str:
        found = client.get(
            "/connect", {"client": name, "endpoint": endpoint}, HTTP_HOST=host
        ).content.decode()
        href = re.search(r'href="((?:vscode|cursor):[^"]+)"', found)
        return html.unescape(href[1]) if href else ""

    def of_cursor(address: str) -> Any:
        query = parse_qs(urlsplit(address).query)
        assert query["name"][0].startswith("codeinfo")
        return json.loads(base64.b64decode(query["config"][0]))

    here = of_cursor(link("cursor", "localhost"))
    assert here["args"][-1] == "mcp"
    there = of_cursor(link("cursor", "testserver"))
    assert there == {"type": "http", "url": "http://testserver/mcp"}
    address = link("vs-code", "localhost", "question")
    assert address.startswith("vscode:mcp/install?")
    assert json.loads(unquote(address.partition("?")[2])) == {
        "name": "codeinfo-question",
        "type": "http",
        "url": "http://localhost/mcp/chat",
    }
    assert link("codex", "localhost") == ""
