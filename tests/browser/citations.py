"""A repository whose lines an answer cites, and where the viewer stands."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.chromium import WIDE, OpenPage, go, new_context, settled
from tests.browser.product import Product
from tests.browser.repository import LONG_WAIT, ingested
from tests.support.waiting import wait_until

# Whether all of the first cited line is shown.
IS_IN_SIGHT = """() => {
  const pane = document.querySelector(".viewer__code").getBoundingClientRect();
  const line = document.querySelector(".viewer__code .is-cited").getBoundingClientRect();
  return line.top >= pane.top && line.bottom <= pane.bottom;
}"""

DEEDS = {
    "crane.py": "load_container_with_crane",
    "tide.py": "predict_tide_of_harbour",
    "lamp.py": "trim_lamp_of_lighthouse",
}
QUESTION = "load container with crane, predict tide of harbour, trim lamp of lighthouse"


def source(deed: str) -> str:
    """A file of 360 lines whose function `deed` is far down."""
    filler = [f"def filler_{n}(value):\n    return value + {n}\n\n\n" for n in range(90)]
    filler[60] = f"def {deed}(harbour):\n    return harbour.{deed}\n\n\n"
    return "".join(filler)


FILES = {f"src/{name}": source(deed) for name, deed in DEEDS.items()}


@pytest.fixture(scope="module")
def harbour(product: Product) -> Iterator[Path]:
    with ingested(product, "harbour", FILES):
        yield product.repos / "harbour"


@pytest.fixture(scope="module")
def conversation(product: Product, browser: Browser, harbour: Path) -> str:
    """The address of a conversation whose answer cites all three files."""
    context = new_context(browser, product.url, viewport={"width": 1100, "height": 800})
    page = context.new_page()
    go(page, "/chat")
    page.get_by_label("Provider").select_option("builtin")
    page.get_by_label("Message").fill(QUESTION)
    page.get_by_label("Message").press("Enter")
    chip = page.locator("#turns > .turn [data-chip]")
    expect(chip).to_have_text("Complete", timeout=LONG_WAIT)
    address = page.url
    context.close()
    return address.removeprefix(product.url)


class Cited(NamedTuple):
    path: str
    first: int
    last: int


def cited(link: Locator, attribute: str = "data-source") -> Cited:
    url = link.get_attribute(attribute) or ""
    query = re.search(r"path=([^&]+)&start=(\d+)&end=(\d+)", url) or re.search(
        r"/code/harbour/([^?]+)\?lines=(\d+)-(\d+)", url
    )
    assert query
    return Cited(query[1].replace("%2F", "/"), int(query[2]), int(query[3]))


def rows(page: Page) -> list[Locator]:
    """The rows of "Citations (n)", in their order."""
    page.locator(".sources").evaluate("all => (all.open = true)")
    return page.locator(".source-row").all()


def stands_at(page: Page, place: Cited) -> None:
    """The viewer shows this file, tints exactly these lines, and its pane stands at the first."""
    viewer = page.locator("#source, .viewer--page")
    head = page.locator("#source .viewer__head, .crumbs")
    expect(head).to_contain_text(place.path.rpartition("/")[2])
    lines = viewer.locator(".line.is-cited")
    expect(lines).to_have_count(place.last - place.first + 1)
    expect(lines.first.locator(".ln")).to_have_text(str(place.first))
    wanted = FILES[place.path].split("\n")[place.first - 1]
    expect(lines.first).to_contain_text(wanted)
    wait_until(lambda: page.evaluate(IS_IN_SIGHT))


def open_wide(open_page: OpenPage, conversation: str) -> Page:
    """A wide page after its first citation has opened by itself. That moves the rows: a click at
    the same moment may miss."""
    page = open_page(conversation, size=WIDE)
    stands_at(page, cited(rows(page)[0]))
    settled(page)
    return page
