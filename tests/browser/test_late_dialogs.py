"""A dialog or a drawer is that of what a person did last, whatever answer comes late."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import settled
from tests.browser.conftest import OpenPage
from tests.browser.conversations import only_listed
from tests.browser.held import held
from tests.browser.product import Product


@pytest.fixture
def ingest(open_page: OpenPage, harbour: Path, repository: str) -> Page:
    """The ingest page, on which harbour is chosen."""
    page = open_page("/ingest")
    page.get_by_label("Select harbour").check()
    return page


@pytest.fixture
def chat(open_page: OpenPage) -> Iterator[Page]:
    """The chat page, on which two conversations of this test are chosen."""
    page = open_page("/chat")
    with only_listed(page, "Late one", "Late two"):
        page.get_by_role("button", name="Select conversations").click()
        page.get_by_label("Select all").check()
        yield page


def all_come(page: Page) -> None:
    """Wait until an answer that may come is here."""
    page.evaluate("fetch('/version')")
    settled(page)


def test_the_removal_is_of_what_was_pressed_last(ingest: Page) -> None:
    with held(ingest, "**/ui/ingest/remove*") as let_it_come:
        ingest.get_by_role("button", name="Remove selected").click()
    ingest.get_by_role("button", name="Remove lighthouse").click()
    expect(ingest.get_by_role("dialog", name="Remove lighthouse?")).to_be_visible()
    let_it_come()
    all_come(ingest)
    expect(ingest.get_by_role("dialog")).to_have_count(1)
    expect(ingest.get_by_role("dialog", name="Remove lighthouse?")).to_be_visible()


def test_what_is_removed_is_no_longer_chosen(ingest: Page) -> None:
    ingest.route("**/ui/ingest/remove", lambda route: route.fulfill(status=204))
    ingest.get_by_role("button", name="Remove selected").click()
    ingest.get_by_role("dialog").get_by_role("button", name="Remove harbour").click()
    expect(ingest.get_by_role("dialog")).to_have_count(0)
    expect(ingest.get_by_label("Select harbour")).not_to_be_checked()


def test_a_row_that_is_pressed_after_another_is_the_one_to_be_removed(ingest: Page) -> None:
    with held(ingest, "**/ui/ingest/remove*") as let_it_come:
        ingest.get_by_role("button", name="Remove harbour").click()
    ingest.get_by_role("button", name="Remove lighthouse").click()
    let_it_come()
    expect(ingest.get_by_role("dialog", name="Remove lighthouse?")).to_be_visible()


def test_a_dialog_does_not_open_above_one_that_was_opened_meanwhile(ingest: Page) -> None:
    with held(ingest, "**/ui/ingest/folders*") as let_it_come:
        ingest.get_by_role("button", name="Choose folder…").click()
    ingest.locator("body").press("Control+k")
    let_it_come()
    all_come(ingest)
    expect(ingest.get_by_role("dialog")).to_have_count(1)
    expect(ingest.locator("#palette")).to_be_visible()


def test_a_drawer_that_was_closed_stays_closed(ingest: Page) -> None:
    ingest.locator("[data-row^=lighthouse]").get_by_role("button", name="Details").click()
    drawer = ingest.get_by_role("dialog", name="lighthouse")
    with held(ingest, "**/ui/ingest/skipped*") as let_it_come:
        drawer.get_by_role("link", name="with reasons").click()
    ingest.keyboard.press("Escape")
    let_it_come()
    all_come(ingest)
    expect(ingest.get_by_role("dialog")).to_have_count(0)


def test_the_picker_shows_the_folder_that_was_pressed_last(
    open_page: OpenPage, product: Product
) -> None:
    for name in ("quay-east", "quay-west"):
        (product.repos / name / f"in-{name}").mkdir(parents=True)
    page = open_page("/ingest")
    page.get_by_role("button", name="Choose folder…").click()
    dialog = page.get_by_role("dialog", name="Choose a folder")
    with held(page, "**/ui/ingest/folders?*quay-east") as let_it_come:
        dialog.get_by_role("button", name="quay-east").click()
    with held(page, "**/ui/ingest/folders?*quay-west") as let_the_second_come:
        dialog.get_by_role("button", name="quay-west").click()
    let_it_come()
    all_come(page)
    let_the_second_come()
    expect(dialog.get_by_role("button", name="in-quay-west")).to_be_visible()


def test_a_dialog_that_is_open_again_is_not_closed_by_what_it_sent_before(chat: Page) -> None:
    verb = chat.locator("#convo-bulk").get_by_role("button", name="Tag selected")
    field = chat.get_by_role("dialog").get_by_label("Tag", exact=True)
    verb.click()
    field.fill("first")
    with held(chat, "**/ui/chat/bulk/tag") as let_it_come:
        field.press("Enter")
    chat.keyboard.press("Escape")
    verb.click()
    field.fill("second")
    let_it_come()
    expect(chat.get_by_text("Tagged 2 conversations")).to_be_visible()
    expect(field).to_be_visible()
    expect(field).to_have_value("second")


def test_a_title_that_is_typed_again_is_not_closed_by_the_one_before(chat: Page) -> None:
    def rename() -> None:
        chat.get_by_role("button", name="Actions for Late one").click()
        chat.locator("#convo-menu").get_by_role("button", name="Rename").click()

    chat.get_by_role("button", name="Done selecting").click()
    title = chat.get_by_label("Title")
    rename()
    title.fill("Late first")
    with held(chat, "**/ui/chat/rename") as let_it_come:
        title.press("Enter")
    chat.keyboard.press("Escape")
    rename()
    title.fill("Late second")
    let_it_come()
    expect(chat.locator("#convos")).to_contain_text("Late first")
    expect(title).to_have_value("Late second")
    expect(title).to_be_visible()
