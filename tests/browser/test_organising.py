"""Ratings of answers, prompts in the composer and tags of conversations, in a browser."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.axe import objections
from tests.browser.chat import ask, done, turn
from tests.browser.chromium import PHONE, go, load_again
from tests.browser.conftest import OpenPage
from tests.browser.conversations import made, remove
from tests.browser.product import Product

SIDEWAYS = "document.documentElement.scrollWidth > innerWidth"
pytestmark = pytest.mark.usefixtures("stand_in")


# Ratings


def button(page: Page, name: str) -> Locator:
    return turn(page).get_by_role("button", name=name, exact=True)


def test_an_answer_is_rated_with_the_keyboard_and_a_reload_keeps_it(open_page: OpenPage) -> None:
    page = open_page("/chat")
    ask(page, "First?", model="plain")
    done(page)
    good, bad = button(page, "Good answer"), button(page, "Bad answer")
    expect(good).to_have_attribute("aria-pressed", "false")
    good.press("Enter")
    expect(good).to_have_attribute("aria-pressed", "true")
    expect(good).to_be_focused()
    bad.press(" ")
    expect(bad).to_have_attribute("aria-pressed", "true")
    expect(good).to_have_attribute("aria-pressed", "false")
    assert objections(page) == []
    load_again(page)
    expect(bad).to_have_attribute("aria-pressed", "true")
    bad.click()
    expect(bad).to_have_attribute("aria-pressed", "false")
    load_again(page)
    expect(bad).to_have_attribute("aria-pressed", "false")


# Prompts


def options(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Prompts").get_by_role("option")


def edit_prompts(page: Page) -> Locator:
    page.get_by_role("button", name="Prompts", exact=True).click()
    options(page).filter(has_text="Edit prompts").click()
    dialog = page.get_by_role("dialog", name="Prompts")
    expect(dialog).to_be_visible()
    return dialog


def save_prompt(dialog: Locator, name: str, text: str) -> None:
    new = dialog.get_by_role("region", name="New prompt")
    new.get_by_label("Name").fill(name)
    new.get_by_label("Text").fill(text)
    new.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("list", name="Saved prompts")).to_contain_text(name)


def delete_prompt(dialog: Locator, name: str) -> None:
    saved = dialog.get_by_role("listitem").filter(has_text=name)
    saved.locator("summary").click()
    saved.get_by_role("button", name="Delete").click()
    expect(saved).to_have_count(0)


def test_a_slash_completes_a_prompt_and_sends_nothing(open_page: OpenPage) -> None:
    page = open_page("/chat")
    message = page.get_by_label("Message")
    dialog = edit_prompts(page)
    save_prompt(dialog, "Review the change", "Review the last commit.")
    save_prompt(dialog, "Explain it", "Explain this file:\n")
    assert objections(page) == []
    page.keyboard.press("Escape")
    expect(message).to_be_focused()
    message.press_sequentially("/expl")
    expect(options(page).first).to_contain_text("Explain it")
    expect(message).to_have_attribute("aria-activedescendant", "prompt-option-1")
    assert objections(page) == []
    message.press("Enter")
    expect(message).to_have_value("Explain this file:\n")
    expect(options(page)).to_have_count(0)
    message.press_sequentially("src/retry.py")
    expect(message).to_have_value("Explain this file:\nsrc/retry.py")
    message.fill("")
    message.press_sequentially("/")
    expect(options(page)).to_have_count(3)
    message.press("ArrowDown")
    expect(message).to_have_attribute("aria-activedescendant", "prompt-option-2")
    message.press("Escape")
    expect(options(page)).to_have_count(0)
    expect(message).to_have_value("/")
    expect(page.locator("#turns > .turn")).to_have_count(0)
    message.fill("")
    dialog = edit_prompts(page)
    delete_prompt(dialog, "Review the change")
    delete_prompt(dialog, "Explain it")
    expect(dialog).to_contain_text("Start with one of these")


def test_a_prompt_that_is_being_changed_stays_so_when_another_is_saved_or_deleted(
    open_page: OpenPage,
) -> None:
    dialog = edit_prompts(open_page("/chat"))
    for name in ("One", "Two", "Three"):
        save_prompt(dialog, name, f"{name}.")
    saved = dialog.get_by_role("list", name="Saved prompts").get_by_role("listitem")
    one, two, three = (saved.filter(has_text=name) for name in ("One", "Two", "Three"))
    for prompt in (one, two, three):
        prompt.locator("summary").click()
    two.get_by_label("Text").fill("Two, changed.")
    new = dialog.get_by_role("region", name="New prompt").get_by_label("Text")
    new.fill("A new one.")
    one.get_by_label("Text").fill("One, changed.")
    one.get_by_role("button", name="Save").click()
    expect(one.get_by_label("Text")).to_be_hidden()
    delete_prompt(dialog, "Three")
    expect(two.get_by_label("Text")).to_have_value("Two, changed.")
    expect(two.get_by_label("Text")).to_be_visible()
    expect(new).to_have_value("A new one.")
    two.get_by_role("button", name="Save").click()
    expect(two.get_by_label("Text")).to_be_hidden()
    for name in ("One", "Two"):
        delete_prompt(dialog, name)
    expect(new).to_have_value("A new one.")


def test_a_path_at_the_start_is_no_prompt_and_is_sent(open_page: OpenPage) -> None:
    page = open_page("/chat")
    page.get_by_label("Model").select_option("plain")
    page.get_by_label("Message").press_sequentially("/usr/lib is what?")
    page.get_by_label("Message").press("Enter")
    expect(turn(page).locator("[data-question]")).to_have_text("/usr/lib is what?")
    done(page)


def test_a_long_line_that_begins_with_a_slash_is_not_looked_up(open_page: OpenPage) -> None:
    page = open_page("/chat")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    message = page.get_by_label("Message")
    message.fill("/* " + "x = 1; " * 20_000)
    message.fill("/explain")
    expect(options(page).filter(has_text="Explain this file")).to_be_visible()
    assert [len(url) for url in asked if "presets" in url and len(url) > 300] == []


def test_the_button_inserts_at_the_caret_on_a_phone(open_page: OpenPage) -> None:
    page = open_page("/chat", size=PHONE)
    message = page.get_by_label("Message")
    message.fill("First: ")
    page.get_by_role("button", name="Prompts", exact=True).click()
    expect(options(page)).to_have_count(4)
    assert not page.evaluate(SIDEWAYS)
    options(page).filter(has_text="Find the tests").click()
    expect(message).to_have_value(re.compile("^First: Which tests cover this"))
    dialog = edit_prompts(page)
    expect(dialog.get_by_label("Text")).to_have_value(re.compile("^First: Which tests"))
    dialog.get_by_role("button", name="Explain this file").click()
    expect(dialog.get_by_role("list", name="Saved prompts")).to_contain_text("Explain this file")
    expect(dialog.get_by_role("region", name="New prompt").get_by_label("Text")).to_have_value("")
    assert not page.evaluate(SIDEWAYS)
    assert objections(page) == []
    saved = dialog.get_by_role("listitem").filter(has_text="Explain this file")
    saved.locator("summary").click()
    saved.get_by_label("Name").fill("x" * 60)
    saved.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("listitem")).to_contain_text("x" * 60)
    assert not dialog.evaluate("(each) => each.scrollWidth > each.clientWidth")
    delete_prompt(dialog, "x" * 60)


# Tags


@pytest.fixture
def page(open_page: OpenPage, product: Product) -> Iterator[Page]:
    """The chat page, its list narrowed to two conversations of this test."""
    page = open_page("/chat")
    ids = [made(page, title) for title in ("Tagged one", "Tagged two")]
    page.get_by_label("Search conversations").fill("Tagged")
    expect(page.locator("#convos [data-row]")).to_contain_text(["Tagged two", "Tagged one"])
    yield page
    remove(page, ids)


def row(page: Page, title: str) -> Locator:
    return page.locator("#convos [data-row]").filter(has_text=title)


def test_a_conversation_is_tagged_from_its_menu_and_the_list_filters_by_it(page: Page) -> None:
    expect(page.locator("#f-tag")).to_have_count(0)
    page.get_by_role("button", name="Actions for Tagged one").click()
    page.locator("#convo-menu").get_by_text("Tags…").click()
    dialog = page.get_by_role("dialog", name="Tags of “Tagged one”")
    field = dialog.get_by_label("Add a tag")
    expect(field).to_be_focused()
    field.fill("Needs Review")
    field.press("Enter")
    expect(dialog.get_by_role("list", name="Tags")).to_have_text("#needs-review")
    expect(field).to_be_focused()
    expect(field).to_have_value("")
    field.fill("x" * 60)
    field.press("Enter")
    expect(dialog.get_by_role("alert")).to_have_text("A tag has at most 40 characters.")
    field.fill("later")
    field.press("Enter")
    expect(dialog.get_by_role("listitem")).to_have_count(2)
    assert objections(page) == []
    field.fill("typed")
    dialog.get_by_role("button", name="Remove later").press("Enter")
    expect(dialog.get_by_role("listitem")).to_have_count(1)
    expect(field).to_have_value("typed")
    dialog.get_by_role("button", name="Done").click()
    expect(row(page, "Tagged one")).to_contain_text("#needs-review")
    page.locator("#f-tag").select_option("needs-review")
    expect(page.locator("#convos [data-row]")).to_have_count(1)
    assert objections(page) == []
    page.locator("#f-tag").select_option("")
    expect(page.locator("#convos [data-row]")).to_have_count(2)
    page.get_by_label("Search conversations").fill("tagged needs-review")
    expect(page.locator("#convos [data-row]")).to_have_count(1)


def test_a_tag_that_is_chosen_while_a_list_with_other_tags_comes_stays_chosen(page: Page) -> None:
    page.get_by_role("button", name="Actions for Tagged one").click()
    page.locator("#convo-menu").get_by_text("Tags…").click()
    dialog = page.get_by_role("dialog", name="Tags of “Tagged one”")
    for tag in ("kept", "leaving"):
        dialog.get_by_label("Add a tag").fill(tag)
        dialog.get_by_label("Add a tag").press("Enter")
        expect(dialog.get_by_role("list", name="Tags")).to_contain_text(tag)
    expect(page.locator("#f-tag")).to_contain_text("#leaving")
    held: list[Route] = []
    page.route("**/ui/chat/sidebar*", lambda route: held.append(route), times=1)
    with page.expect_request("**/ui/chat/sidebar*"):
        dialog.get_by_role("button", name="Remove leaving").click()
    dialog.get_by_role("button", name="Done").click()
    page.locator("#f-tag").select_option("kept")
    held[0].continue_()
    expect(page.locator("#f-tag")).not_to_contain_text("#leaving")
    expect(page.locator("#convos [data-row]")).to_have_count(1)
    expect(page.locator("#f-tag")).to_have_value("kept")


def test_several_are_tagged_at_once(page: Page) -> None:
    page.get_by_role("button", name="Select conversations").click()
    verb = page.locator("#convo-bulk").get_by_role("button", name="Tag selected")
    expect(verb).to_be_disabled()
    page.get_by_label("Select all").check()
    expect(page.locator("#convo-bulk")).to_contain_text("2 selected")
    verb.click()
    dialog = page.get_by_role("dialog", name="Tag the selected conversations")
    dialog.get_by_label("Tag", exact=True).fill("both")
    assert objections(page) == []
    dialog.get_by_label("Tag", exact=True).press("Enter")
    expect(page.get_by_text("Tagged 2 conversations")).to_be_visible()
    expect(dialog).to_be_hidden()
    expect(page.locator("#convos .convo__tags")).to_have_text(["#both", "#both"])
    page.get_by_label("Select Tagged one", exact=True).check()
    verb.click()
    dialog.get_by_label("Tag", exact=True).fill("both")
    dialog.get_by_role("button", name="Remove tag").click()
    expect(page.get_by_text("Untagged 1 conversation")).to_be_visible()
    expect(page.locator("#convos .convo__tags")).to_have_text(["#both"])
    go(page, "/")
    expect(page.locator(".convo__tags")).to_have_css("font-size", "12px")
