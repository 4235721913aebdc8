"""Times and days are those of the reader's zone, not of the server's."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import go, load_again, new_context
from tests.browser.product import Product

ZONE = "Pacific/Kiritimati"  # UTC+14
TITLE = "What time is it?"
LONG_WAIT = 60_000


@pytest.fixture
def page(browser: Browser, product: Product) -> Iterator[Page]:
    """A chat page in ZONE with one answered question."""
    context = new_context(browser, product.url, timezone_id=ZONE)
    page = context.new_page()
    go(page, "/chat")
    page.get_by_label("Provider").select_option("builtin")
    page.get_by_label("Message").fill(TITLE)
    page.get_by_label("Message").press("Enter")
    expect(page.locator("#turns [data-chip]")).to_have_text("Complete", timeout=LONG_WAIT)
    yield page
    context.close()


def shown_in_zone(page: Page, place: str) -> None:
    """The time of a place is that of its moment in ZONE."""
    time = page.locator(f"{place} time").first
    moment = datetime.fromisoformat(time.get_attribute("datetime") or "")
    expect(time).to_have_text(f"{moment.astimezone(ZoneInfo(ZONE)):%H:%M}")


def test_an_answer_and_its_conversation_show_the_time_of_the_reader(page: Page) -> None:
    row = page.locator("#convos .convo", has_text=TITLE).first
    expect(row).to_be_visible()
    for _ in ("live", "loaded"):
        shown_in_zone(page, "#turns .meta")
        shown_in_zone(page, "#convos .convo")
        load_again(page)


def test_conversations_are_grouped_by_the_days_of_the_reader(page: Page) -> None:
    expect(page.locator("#convos .group-label").first).to_have_text("Today")
    tomorrow = datetime.now(ZoneInfo(ZONE)) + timedelta(days=1)
    page.clock.set_fixed_time(tomorrow)
    load_again(page)
    labels = page.locator("#convos .group-label")
    expect(labels.first).to_have_text("Yesterday")
    expect(labels.filter(has_text="Today")).to_have_count(0)
