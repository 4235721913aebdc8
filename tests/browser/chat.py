"""Asking on the chat page: the sample repository, the scripted model, and the turns of the page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

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
    """The stand-in, at its written pace; as it was afterwards."""
    stand_in.pace = 1
    yield stand_in
    stand_in.release()
    stand_in.pace = 0
    stand_in.scripts.clear()


def ask(page: Page, text: str = QUESTION, *, model: str = "slow-tool") -> None:
    page.get_by_label("Model").select_option(model)
    page.get_by_label("Message").fill(text)
    page.get_by_label("Message").press("Enter")


def turn(page: Page, number: int = -1) -> Locator:
    return page.locator("#turns > .turn").nth(number)


def chip(page: Page, number: int = -1) -> Locator:
    return turn(page, number).locator("[data-chip]")


def done(page: Page, word: str = "Complete") -> None:
    expect(chip(page)).to_have_text(word, timeout=LONG_WAIT)
