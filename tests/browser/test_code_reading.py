"""Reading in the code browser: where the outline stands."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.test_code import LONG, LONG_FILE, lantern, line

__all__ = ["lantern"]
STEP = LONG.splitlines().index("    def step_305(self):") + 1


@pytest.mark.parametrize("anchor", ["", f"#L{STEP + 1}"])
def test_the_outline_marks_the_definition_of_the_lines_that_were_asked_for(
    lantern: None, open_page: OpenPage, anchor: str
) -> None:
    page = open_page(f"{LONG_FILE}?lines={STEP + 1}-{STEP + 7}{anchor}")
    marked = page.locator(".outline [aria-current]")
    expect(line(page, STEP + 1)).to_be_in_viewport()
    expect(marked).to_have_attribute("data-first", str(STEP))
    page.wait_for_load_state("networkidle")
    expect(marked).to_have_attribute("data-first", str(STEP))
    expect(page.locator("[data-current-symbol]")).to_have_text("Keeper30.step_305")
    expect(marked).to_be_in_viewport()
    line(page, STEP).hover()
    page.mouse.wheel(0, 3000)
    expect(marked).not_to_have_attribute("data-first", str(STEP))
    expect(marked).to_be_in_viewport()
