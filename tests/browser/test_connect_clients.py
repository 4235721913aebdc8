"""The Connect page adds codeinfo to a client of this machine, after it has shown the change."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.axe import objections_of_looks
from tests.browser.chromium import load_again
from tests.browser.conftest import OpenPage
from tests.browser.narrow import sideways_at
from tests.browser.product import Product
from tests.mcp.speech import META, PREFIX, STATELESS, headers_for, request
from tests.support.waiting import PATIENCE, wait_until

NAME = '<b onclick="alert(1)">client'


@pytest.fixture
def cursor(product: Product) -> Iterator[Path]:
    """Cursor's folder in the home folder of the product."""
    folder = product.data.parent / ".cursor"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def call(product: Product, name: str) -> None:
    info = {f"{PREFIX}/clientInfo": {"name": name, "version": "1"}}
    body = request("tools/list", {"_meta": META | info})
    httpx.post(
        f"{product.url}/mcp", json=body, headers=headers_for(body, STATELESS), timeout=PATIENCE
    )


def test_cursor_is_added_and_removed_by_button(
    open_page: OpenPage, product: Product, cursor: Path
) -> None:
    config = cursor / "mcp.json"
    config.write_text('{\n  "mcpServers": {\n    "other": {"url": "http://x"}\n  }\n}\n')
    before = config.read_bytes()
    page = open_page("/connect")
    page.get_by_role("button", name="Add to Cursor…").click()
    expect(page.get_by_role("heading", name="Add codeinfo to Cursor")).to_be_focused()
    change = page.get_by_role("region", name=f"Change of {config}")
    expect(change).to_contain_text('+    "codeinfo": {')
    assert config.read_bytes() == before
    page.get_by_role("button", name="Cancel").click()
    expect(change).to_have_count(0)
    page.get_by_role("button", name="Add to Cursor…").click()
    page.get_by_role("button", name="Write these files").click()
    expect(page.get_by_text("codeinfo was added to Cursor.")).to_be_visible()
    servers = json.loads(config.read_text())["mcpServers"]
    assert list(servers) == ["other", "codeinfo"]
    assert (cursor / "skills/codeinfo/SKILL.md").is_file()
    call(product, "cursor-vscode")
    call(product, NAME)
    clients = page.get_by_role("region", name="Clients")

    def has_called() -> bool:
        load_again(page)
        return "Last call: tools/list of codeinfo" in clients.inner_text()

    wait_until(has_called)  # what is written down when the call has been answered
    expect(clients.get_by_role("heading", name=NAME)).to_be_visible()
    page.get_by_role("button", name="Remove from Cursor…").click()
    page.get_by_role("button", name="Write these files").click()
    expect(page.get_by_text("codeinfo was removed from Cursor.")).to_be_visible()
    assert config.read_bytes() == before
    assert not (cursor / "skills").exists()


OLD = {"command": "/p/python", "args": ["-m", "codeinfo_cli", "mcp"], "env": {"PYTHONPATH": "/p"}}


def test_an_entry_that_runs_the_open_folder_is_named_and_replaced(
    open_page: OpenPage, cursor: Path
) -> None:
    config = cursor / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"codeinfo": OLD}}, indent=2))
    page = open_page("/connect")
    clients = page.get_by_role("region", name="Clients")
    expect(clients).to_contain_text("Its entry lets a repository that you open there run its own")
    assert objections_of_looks(page) == []
    assert sideways_at(page, (320, 390, 1440)) == {}
    page.get_by_role("button", name="Replace in Cursor…").click()
    page.get_by_role("button", name="Write").click()
    expect(page.get_by_text("codeinfo was added to Cursor.")).to_be_visible()
    expect(clients).not_to_contain_text("run its own")
    assert "__main__.py" in config.read_text()


def test_a_shown_change_is_no_obstacle(open_page: OpenPage, cursor: Path) -> None:
    page = open_page("/connect?client=cursor")
    link = page.get_by_role("link", name="Add to Cursor")
    expect(link).to_have_attribute("href", re.compile("^cursor://anysphere.cursor-deeplink/"))
    page.get_by_role("button", name="Add to Cursor…").click()
    expect(page.get_by_role("heading", name="Add codeinfo to Cursor")).to_be_visible()
    assert objections_of_looks(page) == []
    assert sideways_at(page, (320, 390, 1440)) == {}
    (cursor / "mcp.json").write_text("{broken")
    page.get_by_role("button", name="Write").click()
    expect(page.get_by_role("alert")).to_contain_text("mcp.json is damaged: line 1")
