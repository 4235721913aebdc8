"""From an empty database to a cited answer in two clicks, and the ways to ask that follow.

The tests of this file share one product, which they take through its first use in their order.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe import objections
from tests.browser.chromium import OpenPage, Profiles, go, new_context
from tests.browser.product import Product, running
from tests.support.git import commit_all, init
from tests.support.ingested import write_files

INGEST = 120_000
SHOP: dict[str, str | bytes] = {
    "shop/app.py": (
        "from shop.orders import price, save_order\n\n\n"
        "class Shop:\n"
        '    """Takes orders."""\n\n'
        "    def serve(self, request):\n"
        '        """Serve one request of a customer."""\n'
        "        return self.full_dispatch(request)\n\n"
        "    def full_dispatch(self, request):\n"
        '        """Check a request, and dispatch the order in it."""\n'
        "        self.check(request)\n        return self.dispatch_order(request)\n\n"
        "    def dispatch_order(self, request):\n"
        '        """Price an order and save it."""\n'
        "        price(request)\n        return save_order(request)\n\n"
        "    def check(self, request):\n        return price(request)\n"
    ),
    "shop/orders.py": (
        "def price(order):\n    return 1\n\n\ndef save_order(order):\n    return price(order)\n"
    ),
}


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product with an empty database, and two repositories beneath its base."""
    folder = tmp_path_factory.mktemp("first")
    for name in ("shop", "clock"):
        (folder / "repos" / "team" / name).mkdir(parents=True)
        commit_all(write_files(init(folder / "repos" / "team" / name), SHOP))
    (folder / "repos" / "plain").mkdir()
    with running(folder) as product:
        yield product


@pytest.fixture(scope="module")
def profiles(browser: Browser, empty: Product) -> Iterator[Profiles]:
    made = Profiles(browser, empty.url)
    yield made
    made.close()


def test_a_folder_elsewhere_is_allowed_where_it_is_refused(
    browser: Browser, tmp_path: Path
) -> None:
    """No base is set, so that the page may add one."""
    elsewhere = write_files(init(tmp_path / "elsewhere" / "shop"), SHOP)
    commit_all(elsewhere)
    with running(tmp_path / "home", CODEINFO_INGEST_BASE="") as product:
        context = new_context(browser, product.url)
        page = context.new_page()
        go(page, "/ingest")
        page.get_by_label("Folder path").fill(str(elsewhere))
        page.get_by_role("button", name="Start ingest").click()
        expect(page.locator("#allowable")).to_contain_text(str(elsewhere))
        page.get_by_role("button", name="Allow this folder").click()
        expect(page.locator("#allowable")).to_have_count(0)
        expect(page.get_by_label("Display name")).to_have_value("shop")
        page.get_by_role("button", name="Start ingest").click()
        row = page.locator("#roots [data-row]")
        expect(row).to_contain_text("Completed", timeout=INGEST)
        context.close()


def has_no_sideways_scroll(page: Page) -> bool:
    inside = "document.getElementById('transcript')"
    script = f"[document.documentElement, {inside}].every(e => e.scrollWidth <= e.clientWidth)"
    return bool(page.evaluate(script))


def test_the_empty_chat_lists_the_repositories(open_page: OpenPage) -> None:
    page = open_page("/chat")
    rows = page.get_by_role("button", name=re.compile("^Ingest (shop|clock)"))
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("python")
    expect(rows.first).to_contain_text("B")
    expect(page.get_by_text("plain")).to_have_count(0)
    # Axe has looked at it in the gallery.
    for width in (320, 390, 1440, 1600):
        page.set_viewport_size({"width": width, "height": 900})
        assert has_no_sideways_scroll(page), width


def test_what_is_not_connected_is_one_quiet_line(open_page: OpenPage) -> None:
    page = open_page("/chat")
    line = page.locator("#picker-reason")
    expect(line).to_have_text(
        "OpenAI-compatible server, LM Studio and OpenAI Codex not connected. How to connect"
    )
    box = line.bounding_box()
    assert box is not None
    assert box["height"] < 24
    expect(page.locator("#composer")).not_to_contain_text("CODEINFO_")
    page.get_by_role("link", name="How to connect").click()
    expect(page).to_have_url(re.compile("/providers$"))


def test_two_clicks_lead_to_a_cited_answer(open_page: OpenPage) -> None:
    page = open_page("/chat")
    watching = open_page("/chat")  # a second tab, which follows
    row = page.get_by_role("button", name=re.compile("^Ingest shop"))
    row.click()  # the first
    progress = page.locator("#chat-run")
    expect(progress).to_contain_text(re.compile("Ingesting shop|shop is ingested"))
    for tab in (page, watching):
        questions = tab.locator("#chat-run [data-example]")
        expect(questions).to_have_count(4, timeout=INGEST)
        expect(questions.first).to_have_text("How does Shop.serve reach dispatch_order?")
        expect(tab.get_by_role("heading", name="Choose a repository")).to_be_hidden()
    assert objections(page) == []
    expect(page.locator("#h-chat-run")).to_be_focused()
    page.locator("#chat-run [data-example]").first.click()  # the second
    turn = page.locator("#turns > .turn")
    expect(turn.locator("[data-chip]")).to_have_text("Complete")
    expect(turn.locator(".prose .cite").first).to_be_visible()
    expect(page.get_by_role("heading", name="Ask your code")).to_be_hidden()
    viewer = page.get_by_role("complementary", name="Source viewer")
    expect(viewer).to_be_visible()
    expect(viewer.locator(".line.is-cited").first).to_be_visible()
    expect(page.locator(".scope-chip")).to_have_text(["shop"])
    expect(page).to_have_url(re.compile("repo=shop"))
    # A line of code is 20 px high, and so is its number.
    assert objections(page) == []


def test_afterwards_a_new_chat_begins_with_its_questions(open_page: OpenPage) -> None:
    for size in ((320, 700), (1600, 1000)):
        page = open_page("/chat", size=size)
        expect(page.get_by_role("heading", name="Ask about shop")).to_be_visible()
        expect(page.locator("[data-example]")).to_have_count(4)
        expect(page.get_by_role("heading", name="Choose a repository")).to_have_count(0)
        assert has_no_sideways_scroll(page)


def test_the_field_of_home_asks(open_page: OpenPage) -> None:
    page = open_page("/")
    page.get_by_label("Ask about your code").fill("Where is an order saved?")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/chat\?c="))
    turn = page.locator("#turns > .turn")
    expect(turn.get_by_role("heading", name="Where is an order saved?")).to_be_visible()
    expect(turn.locator("[data-chip]")).to_have_text("Complete")
    expect(page.locator(".viewer .line.is-cited").first).to_be_visible()


def test_the_repositories_of_home_lead_to_the_code(open_page: OpenPage) -> None:
    """The page behind the link is the code browser's (tests of its own)."""
    page = open_page("/")
    link = page.get_by_role("link", name="shop", exact=True)
    expect(link).to_have_attribute("href", "/code/shop")


def test_a_finished_ingest_elsewhere_offers_to_ask(open_page: OpenPage, empty: Product) -> None:
    page = open_page("/ingest")
    page.get_by_label("Folder path").fill(str(Path(empty.repos) / "team" / "clock"))
    page.get_by_label("Display name").fill("my clock")
    page.get_by_role("button", name="Start ingest").click()
    link = page.get_by_role("link", name="Ask about my clock")
    expect(link).to_be_visible(timeout=INGEST)
    link.click()
    expect(page).to_have_url(re.compile(r"/chat\?repo=my%20clock$"))
    expect(page.get_by_role("heading", name="Ask about my clock")).to_be_visible()
    expect(page.locator(".scope-chip")).to_have_text(["my clock"])
    page.locator("[data-example]").first.click()
    expect(page.locator("#turns > .turn [data-chip]")).to_have_text("Complete")
    expect(page.locator(".viewer .line.is-cited").first).to_be_visible()
