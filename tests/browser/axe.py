"""What axe objects to in a page."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.chromium import PHONE, WIDE, settled

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
    settled(page)
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(AXE)
    rules: dict[str, Any] = {"type": "tag", "values": TAGS}
    if colours_only:
        rules = {"type": "rule", "values": COLOUR_RULES}
    # A fifth of the time goes to what nobody needs: selectors of elements, and style sheets for the
    # rules about sound and about turned screens.
    unread = {"resultTypes": ["violations"], "selectors": False, "elementRef": False}
    options = {"runOnly": rules, **unread, "preload": False}
    found: list[str] = page.evaluate(RUN, options)
    # A line's number is as high as the line of code it stands in: WCAG 2.5.8 exempts such targets.
    return [each for each in found if 'class="ln"' not in each]


def objections_of_looks(page: Page, *, wide: tuple[int, int] = WIDE) -> list[str]:
    """What axe finds wrong in a page as it is shown wide, dark and on a phone."""
    found = []
    for (width, height), dark in ((wide, False), (wide, True), (PHONE, False)):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light")
        found += objections(page, colours_only=dark)
    return found
