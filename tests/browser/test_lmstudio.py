"""The LM Studio page in a browser, and an answer through what was set there."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import PHONE, go
from tests.browser.conftest import OpenPage
from tests.stand_ins.lmstudio_server import EMBEDDER, LMStudioStandIn

LONG_WAIT = 60_000


@pytest.fixture
def lm_studio() -> Iterator[LMStudioStandIn]:
    with LMStudioStandIn() as server:
        yield server


def check(page: Page, address: str) -> None:
    page.get_by_label("LM Studio base URL").fill(address)
    page.get_by_role("button", name="Check status").click()


def test_the_saved_server_answers_on_the_chat_page(
    open_page: OpenPage, lm_studio: LMStudioStandIn
) -> None:
    page = open_page("/")
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page.get_by_role("heading", level=1)).to_have_text("LM Studio")
    expect(page.get_by_text("Idle")).to_be_visible()
    check(page, lm_studio.url)
    count = len(lm_studio.models)
    status_text = f"Connected to {lm_studio.url} ({count} models)"
    expect(page.get_by_role("status").filter(has_text=status_text)).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(count + 1)
    expect(page.get_by_role("row").filter(has_text=EMBEDDER).first).to_contain_text("84 MB")
    go(page, "/chat")
    page.get_by_label("Provider").select_option("lmstudio")
    # Its own models, not those of the provider before.
    expect(page.get_by_label("Model").locator("option[value=loads]")).to_have_count(1)
    page.get_by_label("Model").select_option("reasoning")
    page.get_by_label("Message").fill("Who are you?")
    page.get_by_label("Message").press("Enter")
    turn = page.locator("#turns > .turn").last
    expect(turn.locator("[data-chip]")).to_have_text("Complete", timeout=LONG_WAIT)
    expect(turn).to_contain_text("Hello!")
    expect(turn.get_by_text("Thought process")).to_be_visible()
    go(page, "/lmstudio")
    page.get_by_role("button", name="Reset to default").click()
    expect(page.get_by_label("LM Studio base URL")).not_to_have_value(lm_studio.url)


def test_an_error_is_shown_and_the_field_has_the_focus(open_page: OpenPage) -> None:
    page = open_page("/lmstudio")
    check(page, "ftp://models")
    expect(page.get_by_role("alert")).to_contain_text("must be a URL such as")
    field = page.get_by_label("LM Studio base URL")
    expect(field).to_be_focused()
    expect(field).to_have_value("ftp://models")
    expect(field).to_have_attribute("aria-invalid", "true")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_on_a_phone_the_models_are_cards(
    open_page: OpenPage, lm_studio: LMStudioStandIn, dark: bool
) -> None:
    page = open_page("/lmstudio", size=PHONE, dark=dark)
    check(page, lm_studio.url)
    expect(page.get_by_text("Connected to")).to_be_visible()
    expect(page.get_by_role("columnheader").first).to_be_hidden()
    expect(page.locator("td[data-label=Key]").first).to_be_visible()
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE[0]
    page.get_by_role("button", name="Reset to default").click()
    expect(page.get_by_text("Idle")).to_be_visible()
