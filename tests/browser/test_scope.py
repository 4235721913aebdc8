"""The scope of a question: chips, `@` in the composer, tabs of their own; and an archived chat."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from apps.conversations.scope import MAX_TYPED
from tests.browser.axe import objections
from tests.browser.chat import ask, done, turn
from tests.browser.chromium import PHONE, load_again
from tests.browser.conftest import OpenPage
from tests.browser.product import Product
from tests.browser.repository import ingested
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support.ingested import SAMPLE

HARBOUR = {
    "src/retry.py": SAMPLE["src/retry.py"],
    "docs/retry.md": "# Retry\n\nThe delay before a call is tried again doubles each time.\n",
}
QUESTION = "How long is the delay before a call is tried again?"


@pytest.fixture(scope="module", autouse=True)
def repositories(product: Product) -> Iterator[None]:
    """Two repositories with a file of the same path, removed after this file's tests."""
    with ingested(product, "lantern", SAMPLE), ingested(product, "harbour", HARBOUR):
        yield


def chips(page: Page) -> Locator:
    return page.locator(".scope-chips > li")


def options(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Repositories, folders and files").get_by_role("option")


def add(page: Page, text: str, option: str) -> None:
    page.get_by_label("Message").press_sequentially(f"@{text}")
    expect(options(page).first).to_have_text(option)
    page.get_by_label("Message").press("Enter")


def test_at_completes_repositories_and_files_with_the_keyboard(open_page: OpenPage) -> None:
    page = open_page("/chat")
    message = page.get_by_label("Message")
    message.press_sequentially("Where? @har")
    expect(options(page).first).to_have_text("harbour")
    first = options(page).first.get_attribute("id")
    expect(message).to_have_attribute("aria-activedescendant", str(first))
    assert objections(page) == []
    message.press("Enter")
    expect(chips(page)).to_have_text(["harbour"])
    expect(message).to_have_value("Where? ")
    message.press_sequentially("@lantern/retry")
    expect(options(page).first).to_have_text("lantern/src/retry.py")
    message.press("ArrowDown")
    message.press("ArrowUp")
    message.press("Tab")
    expect(chips(page)).to_have_text(["harbour", "lantern/src/retry.py"])
    message.press_sequentially("@nothing-like-it")
    expect(page.locator(".scope-none")).to_be_visible()
    message.press("Escape")
    expect(page.locator("#scope-options")).to_be_hidden()
    expect(message).to_be_focused()
    page.get_by_role("button", name="Remove harbour", exact=True).press("Enter")
    expect(chips(page)).to_have_text(["lantern/src/retry.py"])
    assert objections(page) == []


def test_a_text_that_no_path_can_be_is_not_looked_up(open_page: OpenPage) -> None:
    page = open_page("/chat")
    message = page.get_by_label("Message")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    message.fill(f"@{'x' * MAX_TYPED}")
    expect(page.locator(".scope-none")).to_be_visible()
    message.fill(f"@{'x' * (MAX_TYPED + 1)}")
    expect(page.locator("#scope-options")).to_be_hidden()
    assert len(sent) == 1


def test_the_mouse_adds_and_removes(open_page: OpenPage) -> None:
    page = open_page("/chat", size=PHONE)
    page.get_by_role("button", name="Limit").click()
    options(page).filter(has_text="lantern").click()
    expect(chips(page)).to_have_text(["lantern"])
    expect(page.get_by_label("Message")).to_have_value("")
    page.get_by_role("button", name="Remove lantern").click()
    expect(chips(page)).to_have_count(0)
    expect(page.get_by_text("all repositories", exact=True)).to_be_visible()


def test_every_result_is_of_the_scope_and_a_reload_keeps_it(open_page: OpenPage) -> None:
    page = open_page("/chat?repo=lantern&ask=retry+delay")
    expect(chips(page)).to_have_text(["lantern"])
    expect(page.get_by_label("Message")).to_have_value("retry delay")
    page.get_by_label("Message").fill("")
    page.get_by_label("Message").press("Backspace")
    expect(chips(page)).to_have_count(0)
    add(page, "harbour/docs", "harbour/docs/")
    page.get_by_label("Provider").select_option("builtin")
    expect(page.get_by_label("Model")).to_have_value("search")
    page.get_by_label("Message").fill(QUESTION)
    page.get_by_label("Message").press("Enter")
    done(page)
    turn(page).locator(".step summary").first.click()
    paths = turn(page).locator(".step .tfile .path")
    expect(paths).to_have_text(["harbour/docs/retry.md"])
    load_again(page)
    expect(chips(page)).to_have_text(["harbour/docs/"])


def test_two_tabs_and_a_running_answer_keep_their_own_scope(
    open_page: OpenPage, stand_in: OpenAIStandIn
) -> None:
    one, two = open_page("/chat?repo=lantern"), open_page("/chat?repo=harbour")
    stand_in.hold()
    try:
        ask(one, QUESTION, model="tool")
        expect(one.locator("[data-stop]")).to_be_visible()
        # What is chosen now is for the next question.
        one.get_by_role("button", name="Remove lantern").click()
        add(one, "harb", "harbour")
        ask(two, QUESTION, model="tool")
        expect(two.locator("[data-stop]")).to_be_visible()
    finally:
        stand_in.release()
    for page, name in ((one, "lantern"), (two, "harbour")):
        done(page)
        turn(page).locator(".step", has_text="VectorSearch").locator("summary").first.click()
        paths = turn(page).locator(".step .tfile .path")
        expect(paths.first).to_contain_text(f"{name}/")
        expect(paths.filter(has_not_text=f"{name}/")).to_have_count(0)
    expect(chips(one)).to_have_text(["harbour"])
    expect(chips(two)).to_have_text(["harbour"])


def test_an_archived_chat_offers_restore_and_no_send(
    open_page: OpenPage, stand_in: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    ask(page, QUESTION, model="plain")
    done(page)
    page.get_by_role("button", name="More actions").click()
    page.locator("#convo-menu").get_by_text("Archive").click()
    expect(page.get_by_text("This conversation is archived.")).to_be_visible()
    send = page.get_by_role("button", name=re.compile("^(Send|Regenerate|Edit and resend)"))
    expect(send).to_have_count(0)
    page.keyboard.press("r")
    expect(page.locator("#turns > .turn")).to_have_count(1)
    expect(page.locator("#convo-menu")).to_be_hidden()
    assert objections(page) == []
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_role("button", name=re.compile("^Send"))).to_be_visible()
