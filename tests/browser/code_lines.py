"""Lines of code in the viewer, and names in them."""

import re

from playwright.sync_api import Locator, Page, Position, expect


def line(page: Page, number: int) -> Locator:
    return page.locator(".viewer__code .line").filter(has=page.locator(f'.ln[name="L{number}"]'))


def wait_for_colours(page: Page, number: int) -> None:
    """Scroll to a line, and wait until its block is the one with colours, which replaces it."""
    line(page, number).scroll_into_view_if_needed()
    expect(page.locator(f'.block[data-plain]:has(.ln[name="L{number}"])')).to_have_count(0)


def place_of(page: Page, number: int, name: str) -> Position:
    """The middle of a name, which is no element, in a line: in pixels from the line's corner."""
    x, y = line(page, number).evaluate(
        """(line, name) => {
            const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
            while (walker.nextNode()) {
                const at = walker.currentNode.data.search(new RegExp(`\\\\b${name}\\\\b`));
                if (at < 0) continue;
                const range = document.createRange();
                range.setStart(walker.currentNode, at);
                range.setEnd(walker.currentNode, at + name.length);
                const box = range.getBoundingClientRect();
                const corner = line.getBoundingClientRect();
                return [box.x + box.width / 2 - corner.x, box.y + box.height / 2 - corner.y];
            }
        }""",
        name,
    )
    return {"x": x, "y": y}


def panel(page: Page) -> Locator:
    return page.get_by_role("dialog", name=re.compile("Definitions|Names in line"))
