"""The list of conversations in a browser: choosing several, and what can be done with them."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import objections
from tests.browser.chromium import PHONE, Complaints, Line, go, load_again
from tests.browser.conftest import OpenPage
from tests.browser.conversations import made, remove
from tests.browser.product import Product
from tests.support.waiting import wait_until

NAMES = ("Bulk one", "Bulk two", "Bulk three")
# A test may run over midnight.
DAYS = (["Today"], ["Today", "Yesterday"], ["Yesterday"])


@pytest.fixture
def page(open_page: OpenPage, product: Product) -> Iterator[Page]:
    """The chat page, its list narrowed to three conversations of this test."""
    page = open_page("/chat")
    ids = [made(page, title) for title in NAMES]
    page.get_by_label("Search conversations").fill("Bulk")
    expect(page.locator("#convos [data-row]")).to_have_count(len(NAMES))
    yield page
    remove(page, ids)


def bar(page: Page) -> Locator:
    return page.locator("#convo-bulk")


def button(page: Page, name: str) -> Locator:
    return bar(page).get_by_role("button", name=name)


def choose(page: Page, title: str) -> None:
    page.get_by_label(f"Select {title}", exact=True).check()


def show(page: Page, state: str, count: int) -> None:
    page.locator("#f-state").select_option(state)
    expect(page.locator("#convos [data-row]")).to_have_count(count)


def test_several_are_archived_and_deleted_for_good(page: Page) -> None:
    everything = page.get_by_label("Select all")
    expect(everything).to_be_hidden()
    page.get_by_role("button", name="Select conversations").click()
    expect(button(page, "Archive selected")).to_be_disabled()
    choose(page, "Bulk one")
    expect(bar(page)).to_contain_text("1 selected")
    assert everything.evaluate("box => box.indeterminate")
    everything.check()
    expect(bar(page)).to_contain_text("3 selected")
    page.get_by_label("Select Bulk two", exact=True).uncheck()
    expect(button(page, "Restore selected")).to_be_disabled()
    button(page, "Archive selected").click()
    expect(page.get_by_text("Archived 2 conversations")).to_be_visible()
    expect(page.locator("#convos [data-row]")).to_have_count(1)
    expect(bar(page)).to_contain_text("0 selected")

    show(page, "all", 3)
    everything.check()
    expect(button(page, "Archive selected")).to_be_disabled()
    expect(button(page, "Restore selected")).to_be_disabled()
    expect(button(page, "Delete selected")).to_be_hidden()

    show(page, "archived", 2)
    expect(bar(page)).to_contain_text("0 selected")
    everything.check()
    button(page, "Delete selected").click()
    dialog = page.get_by_role("dialog", name="Permanently delete conversations?")
    expect(dialog).to_contain_text(
        "This will permanently delete 2 conversations. This action cannot be undone."
    )
    dialog.get_by_role("button", name="Delete conversations").click()
    expect(page.get_by_text("Deleted 2 conversations")).to_be_visible()
    expect(page.locator("#convos")).to_contain_text("No conversation has “Bulk” in its title")
    show(page, "active", 1)


def test_choosing_is_left_as_it_was_entered_and_fits_a_phone(
    open_page: OpenPage, page: Page
) -> None:
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    page.get_by_label("Open menu").click()
    page.get_by_role("button", name="Select conversations").click()
    choose(page, "Bulk one")
    expect(button(page, "Archive selected")).to_be_enabled()
    button(page, "Done selecting").click()
    expect(bar(page)).to_be_hidden()
    expect(page.get_by_role("button", name="Select conversations")).to_be_focused()
    page.get_by_role("button", name="Select conversations").click()
    expect(bar(page)).to_have_text(re.compile("0 selected"))


def test_loaded_rows_stay_when_the_list_changes(page: Page) -> None:
    rows = page.locator("#convos [data-row]")
    more = [made(page, f"Bulk {number}") for number in range(20)]
    expect(rows).to_have_count(20)
    page.get_by_role("button", name="Load more").click()
    expect(rows).to_have_count(23)
    more.append(made(page, "Bulk at last"))
    expect(rows).to_have_count(24)
    remove(page, more)
    expect(rows).to_have_count(3)


def test_changes_during_a_lost_connection_are_shown_after_it(
    page: Page, complaints: Complaints
) -> None:
    complaints.expected += ["WebSocket", "htmx:wsError"]
    line = Line(page, "/ws/ui/chat")
    go(page, page.get_by_role("link", name="Bulk one").get_attribute("href") or "")
    expect(page.locator("html")).to_have_attribute("data-live", "closed")
    other = page.context.new_page()
    go(other, page.url)
    other.keyboard.press("F2")
    other.get_by_label("Title").fill("Bulk anew")
    other.get_by_role("button", name="Rename conversation").click()
    expect(other.get_by_role("heading", level=1)).to_have_text("Bulk anew")
    expect(page.get_by_role("heading", level=1)).to_have_text("Bulk one")
    line.broken = False
    expect(page.get_by_role("heading", level=1)).to_have_text("Bulk anew")
    expect(page.locator("#convos")).to_contain_text("Bulk anew")


def test_the_list_is_searched_for_what_was_said(page: Page) -> None:
    conversation = made(page, "Bulk without the word")
    turn = {"role": "user", "content": "Where is the Bulkhead?", "status": "ok"}
    fields = {"provider": "builtin", "model": "search"}
    page.request.post(f"/conversations/{conversation}/turns", data=turn | fields)
    page.get_by_label("Search conversations").fill("bulkhead")
    row = page.locator("#convos [data-row]")
    expect(row).to_have_count(1)
    expect(row.locator(".convo__found mark")).to_have_text("Bulkhead")
    assert objections(page) == []
    page.get_by_label("Search conversations").fill("bulkheads of steel")
    expect(page.locator("#convos")).to_contain_text("No conversation has “bulkheads of steel”")
    remove(page, [conversation])


def test_a_pinned_conversation_stays_first(page: Page) -> None:
    rows = page.locator("#convos [data-row]")
    expect(rows.first).to_contain_text("Bulk three")
    page.get_by_role("button", name="Actions for Bulk one").click()
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(rows.first).to_contain_text("Bulk one")
    assert objections(page) == []
    load_again(page)
    labels = page.locator("#convos .group-label")
    expect(labels.first).to_have_text("Pinned")
    wait_until(lambda: [text.strip() for text in labels.all_text_contents()[1:]] in DAYS)
    expect(rows.first).to_contain_text("Bulk one")
    page.get_by_label("Search conversations").fill("Bulk")
    expect(rows).to_have_count(len(NAMES))
    expect(labels.first).to_have_text("Pinned")
    wait_until(lambda: [text.strip() for text in labels.all_text_contents()[1:]] in DAYS)
    page.get_by_role("button", name="Actions for Bulk one").click()
    page.get_by_role("button", name="Unpin").click()
    expect(rows.first).to_contain_text("Bulk three")


def test_the_open_conversation_is_scrolled_into_view(page: Page) -> None:
    more = [made(page, f"Bulk {number}") for number in range(45)]
    go(page, f"/chat?c={more[0]}")
    current = page.locator("#convos [aria-current=page]")
    expect(current).to_contain_text("Bulk 0")
    expect(current).to_be_in_viewport()
    assert page.locator("#convos").evaluate("box => box.scrollTop") > 0
    remove(page, more)


def test_a_list_that_is_brought_up_to_date_keeps_its_place_and_the_focus(page: Page) -> None:
    more = [made(page, f"Bulk {number}") for number in range(15)]
    rows = page.locator("#convos [data-row]")
    expect(rows).to_have_count(18)
    actions = page.get_by_role("button", name="Actions for Bulk one")
    actions.focus()
    scrolled = page.locator("#convos").evaluate("box => box.scrollTop")
    assert scrolled > 0
    page.locator("#convos").evaluate("box => (box.dataset.before = 'yes')")
    more.append(made(page, "Bulk at last"))
    expect(page.locator("#convos[data-before]")).to_have_count(0)
    expect(actions).to_be_focused()
    assert page.locator("#convos").evaluate("box => box.scrollTop") == scrolled
    page.get_by_label("Search conversations").fill("Bulk 1")
    expect(rows).to_have_count(6)
    assert page.locator("#convos").evaluate("box => box.scrollTop") == 0
    remove(page, more)
