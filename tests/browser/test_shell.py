"""What every page has: theme, keys, layers, a layout that fits."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import PHONE, Complaints, clipboard, load_again
from tests.browser.conftest import OpenPage
from tests.browser.narrow import sideways_at

PAGES = ("/", "/search", "/ingest", "/lmstudio", "/chat", "/connect", "/api/docs")
# Records the theme of the root element at the moment the first element of the body exists.
FIRST_PAINT = """
new MutationObserver((_, observer) => {
  if (!document.body) return;
  window.firstTheme = document.documentElement.dataset.theme ?? "";
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });
"""


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.querySelector('.main')).backgroundColor"))


def test_the_chosen_theme_is_there_before_the_page_is(open_page: OpenPage) -> None:
    page = open_page("/", script=FIRST_PAINT)
    light = background(page)
    toggle = page.get_by_role("button", name=re.compile("^Theme:")).first
    expect(toggle).to_have_accessible_name("Theme: system")
    toggle.click()
    toggle.click()
    expect(toggle).to_have_accessible_name("Theme: dark")
    assert background(page) != light
    load_again(page)
    assert page.evaluate("window.firstTheme") == "dark"
    expect(toggle).to_have_accessible_name("Theme: dark")


def test_without_a_choice_the_system_decides(look: OpenPage) -> None:
    assert background(look("/")) != background(look("/", dark=True))


@pytest.mark.parametrize(
    ("start", "letter", "path"),
    [
        ("/", "i", "/ingest"),
        ("/", "s", "/search"),
        ("/ingest", "c", "/chat"),
        ("/ingest", "h", "/"),
        ("/", "m", "/connect"),
    ],
)
def test_pages_are_reached_by_keys(look: OpenPage, start: str, letter: str, path: str) -> None:
    page = look(start)
    page.keyboard.press("g")
    page.keyboard.press(letter)
    page.wait_for_url(re.compile(rf"[^/]{path}(\?|$)"))
    expect(page.locator(".nav [aria-current=page]")).to_have_attribute("href", path)


def test_keys_stay_letters_while_a_field_has_focus(page: Page) -> None:
    field = page.get_by_label("Ask about your code")
    page.keyboard.press("/")
    expect(field).to_be_focused()
    page.keyboard.type("gi?")
    expect(field).to_have_value("gi?")
    expect(page).to_have_url(re.compile(r"/$"))


def test_single_keys_can_be_switched_off(page: Page) -> None:
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    page.keyboard.press("?")
    expect(sheet).to_be_visible()
    sheet.get_by_label("Single-key shortcuts").uncheck()
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    page.keyboard.press("?")
    expect(sheet).to_be_hidden()


def test_the_palette_narrows_and_goes(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("go to in")
    commands = page.get_by_role("group", name="Commands").get_by_role("option")
    expect(commands).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url("**/ingest")


def test_the_phone_menu_traps_and_restores_focus(open_page: OpenPage) -> None:
    page = open_page("/", size=PHONE)
    opener = page.get_by_role("link", name="Open menu")
    opener.click()
    menu = page.get_by_role("navigation", name="Main")
    expect(menu.get_by_role("link", name="Ingest")).to_be_visible()
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate("document.getElementById('sidebar').contains(document.activeElement)")
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(opener).to_be_focused()


@pytest.mark.parametrize("path", PAGES)
def test_no_page_scrolls_sideways(look: OpenPage, path: str) -> None:
    page = look(path)
    expect(page.get_by_role("main")).to_be_visible()
    assert sideways_at(page, (320, 390, 768, 1024, 1280)) == {}


def test_the_home_page_shows_what_is_connected(look: OpenPage) -> None:
    page = look("/")
    card = page.locator("#connected")
    expect(card).to_contain_text(re.compile("works|Needs attention"))
    if not card.get_by_role("listitem").first.is_visible():
        card.get_by_text("What is connected").click()
    for name in ("Database", "Search and embedding", "Index", "Search only"):
        row = card.get_by_role("listitem").filter(has=page.get_by_role("heading", name=name))
        expect(row.locator(".badge")).to_have_text(re.compile("Ready|Connected"))
    versions = page.get_by_role("region", name="Versions")
    expect(versions).to_contain_text("Server version")


def test_a_question_from_the_home_page_is_asked_in_the_chat(page: Page) -> None:
    page.get_by_label("Ask about your code").fill("Who calls <b>main</b> & why?")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/chat\?c="))
    turn = page.locator("#turns > .turn")
    expect(turn.locator("[data-question]")).to_have_text("Who calls <b>main</b> & why?")
    expect(turn.locator("[data-chip]")).to_have_text("Complete")


def test_the_report_can_be_copied(page: Page) -> None:
    page.get_by_role("button", name="Copy report").click()
    expect(page.get_by_role("status").filter(has_text="Report copied")).to_be_visible()
    copied = clipboard(page)
    assert "Server version: " in copied
    assert "Index: " in copied


def test_a_wrong_address_leads_home(open_page: OpenPage, complaints: Complaints) -> None:
    complaints.expected.append("status of 404")
    page = open_page("/nowhere")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    page.get_by_role("link", name="Go to Home").click()
    expect(page).to_have_title(re.compile("^Home"))
