"""No page has anything that axe objects to: light, dark and phone, layers open and closed."""

import shutil
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import PAGES, VARIANTS, objections
from tests.browser.chromium import PHONE, WIDE, Complaints
from tests.browser.conftest import OpenPage
from tests.browser.product import Product


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_pages(look: OpenPage, complaints: Complaints, variant: str, path: str) -> None:
    complaints.expected.append("status of 404")
    size, dark = VARIANTS[variant]
    page = look(path, size=size, dark=dark)
    page.wait_for_load_state("networkidle")
    assert objections(page) == []


def open_keys(page: Page) -> None:
    page.keyboard.press("?")


def open_palette(page: Page) -> None:
    page.keyboard.press("Control+k")


def open_menu(page: Page) -> None:
    page.get_by_role("link", name="Open menu").click()


LAYERS: dict[str, tuple[tuple[int, int], Callable[[Page], None], str]] = {
    "keys": (WIDE, open_keys, "#keys"),
    "palette": (WIDE, open_palette, "#palette"),
    "menu": (PHONE, open_menu, "#sidebar"),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_layers(look: OpenPage, layer: str) -> None:
    size, open_layer, selector = LAYERS[layer]
    page = look("/", size=size, dark=True)
    page.wait_for_load_state("networkidle")
    open_layer(page)
    expect(page.locator(selector)).to_be_visible()
    assert objections(page) == []


def test_the_layers_of_the_ingest_page(open_page: OpenPage, product: Product) -> None:
    folder = product.repos / "harbour-master"
    (folder / "keys").mkdir(parents=True)
    (folder / "main.py").write_text("def main():\n    return 1\n")
    (folder / "keys" / "server.pem").write_text("not shown\n")
    page = open_page("/ingest")
    page.get_by_role("button", name="Start ingest").click()
    expect(page.get_by_text("Path is required")).to_be_visible()
    assert objections(page) == []
    page.get_by_label("Folder path").fill(str(folder))
    page.get_by_label("Display name").fill(folder.name)
    page.get_by_role("button", name="Start ingest").click()
    row = page.locator("#roots [data-row]").filter(has_text=folder.name)
    expect(row).to_contain_text("Completed", timeout=60_000)
    row.get_by_role("checkbox").check()
    assert objections(page) == []
    row.get_by_role("button", name="Details").click()
    page.get_by_role("link", name="with reasons").click()
    expect(page.get_by_role("dialog", name="Skipped files")).to_be_visible()
    assert objections(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Choose folder…").click()
    expect(page.get_by_role("dialog", name="Choose a folder")).to_be_visible()
    assert objections(page) == []
    page.keyboard.press("Escape")
    row.get_by_role("button", name=f"Remove {folder.name}").click()
    dialog = page.get_by_role("dialog", name=f"Remove {folder.name}?")
    expect(dialog).to_be_visible()
    assert objections(page) == []
    dialog.get_by_role("button", name=f"Remove {folder.name}").click()
    expect(row).to_have_count(0)
    shutil.rmtree(folder)
