"""Asking on the chat page: the sample repository, the scripted model, and the turns of the page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.chromium import settled
from tests.browser.product import Product
from tests.browser.repository import LONG_WAIT, ingested
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support.ingested import SAMPLE

QUESTION = "How long is the delay before a call is tried again?"


@pytest.fixture(scope="module")
def repository(product: Product) -> Iterator[str]:
    """The sample repository, ingested for a file's tests and removed after them."""
    with ingested(product, "lighthouse", SAMPLE):
        yield "lighthouse"


@pytest.fixture
def model(stand_in: OpenAIStandIn) -> Iterator[OpenAIStandIn]:
    """The stand-in, which answers at once unless it is held; as it was afterwards."""
    yield stand_in
    stand_in.release()
    stand_in.scripts.clear()


def ask(page: Page, text: str = QUESTION, *, model: str = "slow-tool") -> None:
    """Ask, and wait for the turn: what is looked at before may be the turn above."""
    before = page.locator("#turns > .turn").count()
    page.get_by_label("Model").select_option(model)
    page.get_by_label("Message").fill(text)
    page.get_by_label("Message").press("Enter")
    expect(page.locator("#turns > .turn")).to_have_count(before + 1, timeout=LONG_WAIT)


def ask_and_hold(page: Page, model: OpenAIStandIn) -> None:
    """Ask, and wait for the first sentences of the answer, which does not go on by itself."""
    model.hold()
    model.step(100)  # of some 190 frames
    ask(page)
    expect(turn(page)).to_contain_text("Sentence 1 of a slow answer.", timeout=LONG_WAIT)


def turns(page: Page) -> str:
    """The HTML of the turns on a wide page, once the first citation has opened by itself, which
    marks it, and the heads of the answers say what still holds."""
    expect(page.locator("#source .is-cited").first).to_be_visible()
    settled(page)
    return page.locator("#turns").inner_html()


def turn(page: Page, number: int = -1) -> Locator:
    return page.locator("#turns > .turn").nth(number)


def chip(page: Page, number: int = -1) -> Locator:
    return turn(page, number).locator("[data-chip]")


def done(page: Page, word: str = "Complete") -> None:
    expect(chip(page)).to_have_text(word, timeout=LONG_WAIT)
