"""Reading in the code browser: where the outline stands, and presses while colours arrive."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.chromium import drawn, go
from tests.browser.code_lines import line, panel, place_of
from tests.browser.conftest import OpenPage
from tests.browser.lantern import LONG, LONG_FILE

STEP = LONG.splitlines().index("    def step_305(self):") + 1
# A line of the second block, which is plain at first.
PLAIN = LONG.splitlines().index("    def step_46(self):") + 1
ENDS = ("start", "end")  # of a block, in the address of its lines
LINES = re.compile("/ui/code/lines")


@pytest.mark.parametrize("anchor", ["", f"#L{STEP + 1}"])
def test_the_outline_marks_the_definition_of_the_lines_that_were_asked_for(
    lantern: None, open_page: OpenPage, anchor: str
) -> None:
    page = open_page(f"{LONG_FILE}?lines={STEP + 1}-{STEP + 7}{anchor}")
    marked = page.locator(".outline [aria-current]")
    expect(line(page, STEP + 1)).to_be_in_viewport()
    expect(marked).to_have_attribute("data-first", str(STEP))
    expect(line(page, STEP).locator(".k")).to_have_count(1)  # its colours have come
    expect(marked).to_have_attribute("data-first", str(STEP))
    expect(page.locator("[data-current-symbol]")).to_have_text("Keeper30.step_305")
    expect(marked).to_be_in_viewport()
    line(page, STEP).hover()
    page.mouse.wheel(0, 3000)
    expect(marked).not_to_have_attribute("data-first", str(STEP))
    expect(marked).to_be_in_viewport()


def name(page: Page) -> None:
    line(page, PLAIN).hover(position=place_of(page, PLAIN, "step_46"))


def number(page: Page) -> None:
    line(page, PLAIN).locator(".ln").hover()


@pytest.mark.parametrize("point_at", [name, number])
def test_a_press_is_kept_when_the_block_gets_its_colours(
    lantern: None, open_page: OpenPage, point_at: Callable[[Page], None]
) -> None:
    page = open_page("/code/lantern")
    held: list[Route] = []

    def hold(route: Route) -> None:
        start, end = (int(parse_qs(urlsplit(route.request.url).query)[key][0]) for key in ENDS)
        if start <= PLAIN <= end:
            held.append(route)
        else:
            route.continue_()

    page.route(LINES, hold)
    go(page, LONG_FILE)
    with page.expect_request(lambda request: bool(LINES.search(request.url))):
        line(page, PLAIN).scroll_into_view_if_needed()
    plain = page.locator(f'.block[data-plain]:has(.ln[name="L{PLAIN}"])')
    expect(plain).to_have_count(1)
    point_at(page)
    page.mouse.down()
    coloured = held[0].fetch()
    with page.expect_event("requestfinished"):
        held[0].fulfill(response=coloured)
    drawn(page)
    page.mouse.up()
    if point_at is name:
        expect(panel(page)).to_be_visible()
    else:
        expect(page).to_have_url(re.compile(rf"\?lines={PLAIN}$"))
    # What was pressed has been released: the colours come.
    expect(plain).to_have_count(0)
    expect(line(page, PLAIN).locator(".k")).to_have_count(1)
