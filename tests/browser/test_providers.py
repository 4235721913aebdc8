"""The Providers page in a browser: connect a server, and ask it at once."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.axe import objections
from tests.browser.chromium import OpenPage, Profiles, go
from tests.browser.held import held
from tests.browser.narrow import sideways_at
from tests.browser.product import Product, running
from tests.stand_ins.openai_server import OpenAIStandIn

KEY = "canary-browser-key-1"


@pytest.fixture
def server() -> Iterator[OpenAIStandIn]:
    with OpenAIStandIn(key=KEY) as server:
        yield server


@pytest.fixture(scope="module")
def unset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product whose environment names no server of models."""
    with running(tmp_path_factory.mktemp("unset")) as product:
        yield product


@pytest.fixture(scope="module")
def profiles(browser: Browser, unset: Product) -> Iterator[Profiles]:
    made = Profiles(browser, unset.url)
    yield made
    made.close()


def test_a_key_that_is_typed_during_a_test_stays_whole(open_page: OpenPage) -> None:
    page = open_page("/providers")
    card = page.get_by_role("region", name="OpenAI-compatible server")
    key = card.get_by_label("API key")
    key.fill("sk-ab")
    with held(page, "**/ui/providers/openai") as let_it_come:
        card.get_by_role("button", name="Test").click()
    key.press("End")
    key.press_sequentially("cd")
    let_it_come()
    expect(card.get_by_role("alert")).to_be_visible()
    expect(key).to_have_value("sk-abcd")


def test_a_server_is_tested_saved_asked_and_removed(
    open_page: OpenPage, server: OpenAIStandIn
) -> None:
    page = open_page("/")
    page.keyboard.press("g")
    page.keyboard.press("p")
    expect(page.get_by_role("heading", level=1)).to_have_text("Providers")
    card = page.get_by_role("region", name="OpenAI-compatible server")
    card.get_by_label("Address").fill(server.url)
    card.get_by_role("button", name="Test").click()
    expect(card.get_by_role("alert")).to_contain_text("asks for a key: enter it on the Providers")
    expect(card.get_by_label("Address")).to_have_value(server.url)
    card.get_by_label("API key").fill(KEY)
    card.get_by_role("button", name="Save").click()
    expect(card.get_by_role("status")).to_contain_text("Saved.")
    expect(card.get_by_role("status")).to_contain_text("Connected.")
    expect(card.get_by_label("API key")).to_have_value("")
    expect(card).to_contain_text("A key is saved, encrypted.")
    assert KEY not in page.content()
    # At once, without a restart.
    go(page, "/chat")
    expect(page.get_by_label("Provider")).to_have_value("openai")
    expect(page.locator("#picker-reason")).to_have_text(
        "LM Studio and OpenAI Codex not connected. How to connect"
    )
    page.get_by_label("Message").fill("Who are you?")
    page.get_by_label("Message").press("Enter")
    expect(page.locator("#turns > .turn [data-chip]")).to_have_text("Complete")
    go(page, "/providers")
    card.get_by_role("button", name="Remove").click()
    expect(card.get_by_role("status")).to_contain_text("Removed.")
    expect(card.get_by_label("Address")).to_have_value("")


def test_an_error_is_shown_and_the_field_has_the_focus(open_page: OpenPage) -> None:
    page = open_page("/providers")
    card = page.get_by_role("region", name="OpenAI-compatible server")
    card.get_by_label("Address").fill("ftp://models")
    card.get_by_role("button", name="Save").click()
    expect(card.get_by_role("alert")).to_contain_text("must be a URL such as")
    expect(card.get_by_label("Address")).to_be_focused()
    expect(card.get_by_label("Address")).to_have_value("ftp://models")
    assert objections(page) == []


def test_it_fits_every_window(open_page: OpenPage) -> None:
    page = open_page("/providers")
    page.get_by_role("button", name="Set up Codex").click()
    expect(page.get_by_role("region", name="Codex", exact=True)).to_be_visible()
    lm_studio = page.get_by_role("region", name="LM Studio")
    expect(lm_studio.get_by_role("status").last).to_contain_text("Not connected.")
    expect(lm_studio.get_by_role("textbox")).to_have_count(0)
    expect(lm_studio.get_by_role("link")).to_have_attribute("href", "/lmstudio")
    # Axe has looked at it in the gallery.
    assert sideways_at(page, (320, 390, 1440, 1600)) == {}
