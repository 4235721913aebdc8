"""Reading an answer: open blocks while they stream, diagrams, and pages that are 320 px wide."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.test_accessibility import PAGES, objections
from tests.browser.test_chat import LONG_WAIT, ask, done, model, repository, turn
from tests.stand_ins.openai_scripts import Script, end, say
from tests.stand_ins.openai_server import OpenAIStandIn

__all__ = ["model", "repository"]
NARROW = (320, 640)
LIST = "Steps:\n\n- **first** item\n- second item of the list"
TABLE = "\n- third\n\n| name | size |\n| --- | --- |\n| one | 1 |\n| two | 2"
DRAWING = "\n\n```mermaid\nflowchart LR\n" + "".join(
    f"  N{i}[Station number {i}] --> N{i + 1}\n" for i in range(12)
)
OPEN = ".prose--open"


def words(text: str) -> int:
    return len(list(say(text)))


def test_a_list_and_a_table_are_drawn_while_they_are_open(
    open_page: OpenPage, stand_in: OpenAIStandIn, model: OpenAIStandIn
) -> None:
    model.pace = 0
    model.scripts["plain"] = Script([[*say(LIST), *say(TABLE), *end()]])
    page = open_page("/chat")
    model.hold()
    ask(page, "How?", model="plain")
    model.step(words(LIST))
    item = turn(page).locator(f"{OPEN} li")
    expect(item).to_have_count(2, timeout=LONG_WAIT)
    expect(turn(page).locator(f"{OPEN} li strong")).to_have_text("first")
    expect(turn(page)).not_to_contain_text("**")
    model.step(words(TABLE))
    expect(turn(page).locator(f"{OPEN} tbody tr")).to_have_count(2, timeout=LONG_WAIT)
    expect(turn(page)).not_to_contain_text("| --- |")
    model.release()
    done(page)
    expect(turn(page).locator(".prose > table tbody tr")).to_have_count(2)
    expect(turn(page).locator(".prose > ul > li")).to_have_count(3)


def test_a_diagram_has_its_own_scroll_and_zoom(open_page: OpenPage, model: OpenAIStandIn) -> None:
    model.pace = 0
    model.scripts["plain"] = Script([[*say(DRAWING + "```\n"), *end()]])
    page = open_page("/chat", size=NARROW)
    ask(page, "Draw it", model="plain")
    done(page)
    view = turn(page).get_by_role("region", name="Diagram")
    expect(view).to_be_visible(timeout=LONG_WAIT)
    image = view.locator("img:visible")
    fitting = image.bounding_box()
    assert fitting and fitting["width"] <= NARROW[0]
    for _ in range(6):
        turn(page).get_by_role("button", name="Zoom in").click()
    wide = image.bounding_box()
    assert wide and wide["width"] > 2 * fitting["width"]
    assert view.evaluate("v => v.scrollWidth > v.clientWidth && v.scrollLeft > 0")
    assert sideways(page) == 0
    assert objections(page) == []
    view.press("0")
    expect(view).not_to_have_class("is-zoomed")
    back = image.bounding_box()
    assert back and abs(back["width"] - fitting["width"]) < 1


def sideways(page: Page) -> int:
    """Pixels that the page can be scrolled to the side."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth")) if page else 0


# Pairs of visible controls of which neither contains the other, and whose boxes share more than a
# pixel in both directions.
OVERLAPS = """() => {
  const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary")]
    .filter((e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true })
      && !e.closest("dialog:not([open]), .sidebar, .sr-only, .skip, [inert]"));
  const shown = all.map((e) => {
    let { left, right, top, bottom } = e.getBoundingClientRect();
    for (let p = e.parentElement; p; p = p.parentElement) {
      if (getComputedStyle(p).overflow === "visible") continue;
      const box = p.getBoundingClientRect();
      [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
      [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
    }
    return { e, left, right, top, bottom };
  }).filter((s) => s.right - s.left > 1 && s.bottom - s.top > 1);
  const named = (e) => e.outerHTML.slice(0, 120);
  const found = [];
  for (const [i, a] of shown.entries()) for (const b of shown.slice(i + 1)) {
    if (a.e.contains(b.e) || b.e.contains(a.e)) continue;
    if (a.e.labels && [...a.e.labels].some((l) => l.contains(b.e))) continue;
    const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (x > 1 && y > 1) found.push(`${named(a.e)} over ${named(b.e)}`);
  }
  return found;
}"""


@pytest.mark.parametrize("path", [path for path in PAGES if path != "/nowhere"])
def test_at_320_pixels_nothing_overlaps(look: OpenPage, repository: str, path: str) -> None:
    page = look(path, size=NARROW)
    page.wait_for_load_state("networkidle")
    assert sideways(page) == 0
    assert page.evaluate(OVERLAPS) == []


def test_at_320_pixels_an_answer_does_not_overlap(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    model.pace = 0
    page = open_page(f"/chat?repo={repository}", size=NARROW)
    ask(page, model="tool")
    done(page)
    for summary in turn(page).locator(".step > summary").all():
        summary.click()
    assert sideways(page) == 0
    assert page.evaluate(OVERLAPS) == []
