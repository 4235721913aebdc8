"""An open page follows the folder: it offers what has been found since."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.chromium import OpenPage
from tests.browser.product import Product, running
from tests.support.ingested import write_files
from tests.support.served import ingest_into


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("fresh"), CODEINFO_WATCH="auto") as product:
        yield product


def test_the_search_page_offers_the_new_result(watched: Product, open_page: OpenPage) -> None:
    folder = write_files(watched.repos / "ship", {"src/app.py": "def set_sail(): ...\n"})
    ingest_into(watched, folder)
    page = open_page(f"{watched.url}/search?q=%22drop_anchor%22")
    expect(page.get_by_role("heading", name="No matches")).to_be_visible()
    write_files(folder, {"src/app.py": "def drop_anchor(): ...\n"})
    page.get_by_role("button", name="Search again").click()
    expect(page.locator(".hit")).to_contain_text("drop_anchor")
    expect(page.get_by_role("button", name="Search again")).to_be_hidden()


def test_the_ingest_page_shows_what_happens_to_a_folder(
    watched: Product, open_page: OpenPage
) -> None:
    folder = write_files(watched.repos / "boat", {"src/app.py": "def row(): ...\n"})
    ingest_into(watched, folder)
    page = open_page(f"{watched.url}/ingest")
    line = page.locator("tr", has_text="boat")
    expect(line.locator('[data-label="Files"]')).to_have_text("1")
    write_files(folder, {"src/two.py": "def two(): ...\n"})
    expect(line.locator('[data-label="Files"]')).to_have_text("2")
    folder.rename(folder.with_name("away"))
    expect(line).to_contain_text("Its folder is gone.")
    folder.with_name("away").rename(folder)
    expect(line).not_to_contain_text("Its folder is gone.")
    line.get_by_role("button", name="Details").click()
    expect(page.locator("#drawer")).to_contain_text(
        "Ingested by themselves as soon as they are told"
    )
