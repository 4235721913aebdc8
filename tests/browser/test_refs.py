"""A branch, tag or commit of a repository is ingested from its details."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.axe import objections
from tests.browser.chromium import PHONE, WIDE, Complaints
from tests.browser.conftest import OpenPage
from tests.browser.product import Product
from tests.browser.repository import LONG_WAIT, remove
from tests.support.git import commit_all, git, init
from tests.support.ingested import write_files
from tests.support.served import ingest_into
from tests.support.waiting import PATIENCE


@pytest.fixture
def jetty(product: Product) -> Iterator[Path]:
    """A repository with the tag `v1`, which is ingested."""
    folder = init(product.repos / "jetty")
    write_files(folder, {"jetty.py": "def land(ship):\n    return ship\n"})
    commit_all(folder)
    git(folder, "tag", "v1")
    ingest_into(product, folder)
    yield folder
    roots = httpx.get(f"{product.url}/ingest/roots", timeout=PATIENCE).json()["roots"]
    for path in (root["path"] for root in roots if root["name"].startswith("jetty@")):
        remove(product, Path(path))
    remove(product, folder)


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_a_tag_is_ingested_beside_the_folder(
    open_page: OpenPage, complaints: Complaints, jetty: Path, size: tuple[int, int]
) -> None:
    complaints.expected += ["status of 422", "true, body"]  # of the refusal
    page = open_page("/ingest", size=size, dark=size == PHONE)
    roots = page.locator("#roots [data-row]")
    roots.filter(has_text="jetty").get_by_role("button", name="Details").click()
    field = page.get_by_label("Another branch, tag or commit")
    expect(field).to_be_visible()
    assert objections(page) == []
    field.fill("a..b")
    field.press("Enter")
    expect(page.get_by_text("'a..b' cannot be a branch, a tag or a commit.")).to_be_visible()
    field.fill("v1")
    page.get_by_role("dialog", name="jetty").get_by_role("button", name="Ingest").click()
    page.get_by_role("button", name="Close", exact=True).click()
    expect(roots.filter(has_text="jetty@v1")).to_contain_text("Completed", timeout=LONG_WAIT)
    # Typed whole, its name completes as the limit of a chat.
    page = open_page("/chat", size=size)
    page.get_by_label("Message").press_sequentially("@jetty@v")
    expect(page.get_by_role("listbox").get_by_role("option").first).to_have_text("jetty@v1")
