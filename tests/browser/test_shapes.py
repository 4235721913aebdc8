"""A question by its shape on the chat page: rows that are citations, and a picture of the calls."""

import re
from collections.abc import Iterator
from functools import partial

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.axe import objections_of_looks
from tests.browser.chat import done, turn
from tests.browser.chromium import WIDE, load_again
from tests.browser.conftest import OpenPage
from tests.browser.product import Product
from tests.browser.repository import ingested
from tests.lookup.harbours import FILES
from tests.support.waiting import PATIENCE, wait_until

CALLERS, PATH = "What calls `weigh`?", "How does `serve` reach `weigh`?"


@pytest.fixture(scope="module", autouse=True)
def harbour(product: Product) -> Iterator[None]:
    with ingested(product, "harbour", FILES):
        # They are parsed when they are first asked about, which a busy machine does too late.
        for question in (CALLERS, PATH):
            wait_until(partial(is_all_read, product, question))
        yield


def is_all_read(product: Product, question: str) -> bool:
    """Whether an answer does not say that files were not looked at."""
    body = {"query": question, "repository": "harbour"}
    reply = httpx.post(f"{product.url}/tools/vector-search", json=body, timeout=PATIENCE)
    return "looked at" not in str(reply.json()["answer"].get("notes"))


def answered(page: Page, question: str) -> None:
    page.get_by_label("Provider").select_option("builtin")
    page.get_by_label("Message").fill(question)
    page.get_by_label("Message").press("Enter")
    done(page)


def test_the_callers_of_a_function_are_listed_and_drawn(look: OpenPage) -> None:
    page = look("/chat", size=WIDE)
    answered(page, CALLERS)
    body = turn(page)
    expect(body.get_by_text("Called by:")).to_be_visible()
    expect(body.locator("li", has_text="return weigh(tons) + MAX_BERTHS")).to_be_visible()
    node = body.locator("a.graph__node", has_text="Crane.lift")
    expect(node).to_be_visible()
    node.click()
    expect(page.locator("#source")).to_contain_text("return weigh(tons) + MAX_BERTHS")
    # A reload shows the same.
    picture = body.locator(".graph__svg").inner_html()
    load_again(page)
    expect(turn(page).locator(".graph__svg")).to_be_visible()
    again = turn(page).locator(".graph__svg")
    wait_until(lambda: without_current(again.inner_html()) == without_current(picture))


def without_current(html: str) -> str:
    """The HTML without the mark of the citation that is open."""
    return re.sub(r' aria-current="true"', "", html)


def test_a_path_can_be_read_wide_dark_and_on_a_phone(look: OpenPage) -> None:
    page = look("/chat", size=WIDE)
    answered(page, PATH)
    expect(turn(page).locator("a.graph__node")).to_have_count(3)
    assert not objections_of_looks(page)
    # It ends on a phone: the picture is scrolled, and not the page.
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
