"""No page has anything that axe objects to: light, dark and phone, layers open and closed."""

import shutil
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.chromium import PHONE, WIDE, Complaints
from tests.browser.conftest import OpenPage
from tests.browser.product import Product

VARIANTS = {"light": (WIDE, False), "dark": (WIDE, True), "phone": (PHONE, False)}
PAGES = (
    *(
        "/",
        "/search",
        "/code",
        "/ingest",
        "/chat",
        "/agents",
        "/lmstudio",
        "/providers",
        "/connect",
    ),
    *("/login", "/nowhere"),
)
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


# Rules whose result depends on the theme: it changes colours, and the picture of a diagram.
COLOUR_RULES = ["color-contrast", "link-in-text-block", "image-alt"]
AXE = Axe().axe_script
# When nothing moves any more, as what is covered for a moment counts as too small. Returns what is
# wrong only: the rest of a result takes as long to send as to find.
RUN = """async (options) => {
  const ends = (each) => each.playState === "running"
    && each.effect.getComputedTiming().endTime < 5000;
  const ending = document.getAnimations().filter(ends);
  await Promise.all(ending.map((each) => each.finished.catch(() => null)));
  const { violations } = await axe.run(options);
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}"""


def objections(page: Page, *, colours_only: bool = False) -> list[str]:
    """What axe finds wrong. colours_only: the rest has been tested in the other theme."""
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(AXE)
    rules: dict[str, Any] = {"type": "tag", "values": TAGS}
    if colours_only:
        rules = {"type": "rule", "values": COLOUR_RULES}
    options = {"runOnly": rules, "resultTypes": ["violations"]}
    found: list[str] = page.evaluate(RUN, options)
    return found


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
