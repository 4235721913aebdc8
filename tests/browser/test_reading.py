"""Reading an answer: open blocks while they stream, diagrams, and pages that are 320 px wide."""

from playwright.sync_api import expect

from tests.browser.axe import objections
from tests.browser.chat import ask, done, turn
from tests.browser.conftest import OpenPage
from tests.browser.narrow import NARROW, OVERLAPS, sideways
from tests.browser.repository import LONG_WAIT
from tests.stand_ins.openai_scripts import Script, end, say
from tests.stand_ins.openai_server import OpenAIStandIn

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


def test_at_320_pixels_an_answer_does_not_overlap(
    open_page: OpenPage, repository: str, model: OpenAIStandIn
) -> None:
    page = open_page(f"/chat?repo={repository}", size=NARROW)
    ask(page, model="tool")
    done(page)
    steps = turn(page).locator(".step > summary")
    expect(steps.first).to_be_visible()
    for summary in steps.all():
        summary.click()
    assert sideways(page) == 0
    assert page.evaluate(OVERLAPS) == []
