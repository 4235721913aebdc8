"""After Esc the focus is where it was before the layer opened."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.chromium import PHONE, WIDE, settled
from tests.browser.conftest import OpenPage
from tests.browser.product import Product


def button(name: str) -> Callable[[Page], Locator]:
    return lambda page: page.get_by_role("button", name=name, exact=True).first


def more(page: Page) -> Locator:
    return page.locator("#more-actions")


LAYERS = {
    "palette": ("/", button("Command palette"), "#palette", ()),
    "keys": ("/", button("Keyboard shortcuts"), "#keys", ()),
    "folder picker": ("/ingest", button("Choose folder…"), "#folder-dialog", ()),
    "details": ("/ingest", button("Details"), "#drawer", ()),
    "remove": ("/ingest", button("Remove harbour"), "#dialog-slot dialog", ()),
    "change model": ("/ingest", button("Change…"), "#dialog-slot dialog", ()),
    "menu": ("chat", more, "#convo-menu", ()),
    "rename": ("chat", more, "#rename-dialog", ("Rename",)),
    "row's menu": (
        "chat",
        lambda page: page.locator("#convos [data-convo-menu]").first,
        "#convo-menu",
        (),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_escape_leads_back_to_what_opened_the_layer(
    look: OpenPage, conversation: str, name: str
) -> None:
    address, opener, layer, clicks = LAYERS[name]
    page = look(conversation if address == "chat" else address, size=WIDE)
    what = opener(page)
    what.focus()
    page.keyboard.press("Enter")
    for each in clicks:
        page.locator("#convo-menu").get_by_role("button", name=each).click()
    expect(page.locator(layer)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(layer)).to_be_hidden()
    expect(what).to_be_focused()


def test_escape_leads_back_to_an_opener_that_was_replaced_meanwhile(look: OpenPage) -> None:
    page = look("/ingest", size=WIDE)
    remove = button("Remove harbour")(page)
    remove.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("#dialog-slot dialog")
    expect(dialog).to_be_visible()
    # An update of any root does the same.
    page.evaluate("roots.outerHTML = roots.outerHTML; htmx.process(document.body)")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(remove).to_be_focused()


@pytest.mark.parametrize(("key", "layer"), [("Control+k", "#palette"), ("?", "#keys")])
def test_escape_leads_back_to_where_a_key_was_pressed(look: OpenPage, key: str, layer: str) -> None:
    page = look("/ingest")
    link = page.get_by_role("navigation").get_by_role("link", name="Logs")
    link.focus()
    page.keyboard.press(key)
    expect(page.locator(layer)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(layer)).to_be_hidden()
    expect(link).to_be_focused()


def test_the_focus_stays_in_the_folder_picker_and_goes_back_up(
    look: OpenPage, product: Product, tmp_path: Path
) -> None:
    (product.repos / "walk" / "into" / "this").mkdir(parents=True, exist_ok=True)
    (product.repos / "walk" / "before").mkdir(exist_ok=True)
    page = look("/ingest")
    opener = page.get_by_role("button", name="Choose folder…")
    opener.focus()
    page.keyboard.press("Enter")
    picker = page.locator("#picker")
    for name, first in (("walk", "before"), ("into", "this")):
        entry = picker.get_by_role("button", name=name, exact=True)
        expect(entry).to_be_visible()
        entry.focus()
        page.keyboard.press("Enter")
        expect(picker.get_by_role("button", name=first, exact=True)).to_be_focused()
    up = picker.get_by_role("button", name="Up")
    up.focus()
    page.keyboard.press("Enter")
    expect(picker.get_by_role("button", name="into", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()


def test_a_phone_s_sidebar_and_viewer_lead_back(look: OpenPage, conversation: str) -> None:
    page = look(conversation, size=PHONE)
    menu = page.get_by_role("link", name="Open menu")
    menu.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#sidebar")).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(menu).to_be_focused()
    chip = page.locator("#turns .prose [data-source]").first
    chip.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#source .viewer__code")).to_be_focused()
    page.keyboard.press("Escape")
    expect(chip).to_be_focused()


@pytest.mark.parametrize(
    ("address", "name"),
    [("/", "Check again"), ("/ingest", "Refresh models"), ("/providers", "Test")],
)
def test_a_button_that_is_disabled_while_it_works_keeps_the_focus(
    look: OpenPage, address: str, name: str
) -> None:
    page = look(address)
    pressed = button(name)(page)
    pressed.focus()
    with page.expect_response(lambda answer: "/ui/" in answer.url):
        page.keyboard.press("Enter")
    settled(page)
    expect(pressed).to_be_focused()
