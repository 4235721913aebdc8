"""The search page in a browser: symbols as one types, filters, keys, the outline of a file."""

import re
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import PHONE, WIDE
from tests.browser.conftest import OpenPage
from tests.browser.product import Product
from tests.browser.test_accessibility import VARIANTS, objections
from tests.support.ingested import SAMPLE, write_files

LONG_WAIT = 60_000
DEEP = "".join(f"def step_{i}():\n    return {i}\n\n\n" for i in range(900))
REPOSITORIES = {"lamp": SAMPLE, "tide": {"src/tide.py": DEEP, "web/tide.js": "retry();\n"}}


@pytest.fixture(scope="module")
def index(browser: Browser, product: Product) -> Iterator[None]:
    """Two repositories, ingested; gone after the tests of this file."""
    page = browser.new_context(base_url=product.url).new_page()
    page.goto("/ingest")
    for name, files in REPOSITORIES.items():
        page.get_by_label("Folder path").fill(str(write_files(product.repos / name, files)))
        page.get_by_label("Display name").fill(name)
        page.get_by_role("button", name="Start ingest").click()
        row = page.locator("#roots [data-row]").filter(has_text=name)
        expect(row).to_contain_text("Completed", timeout=LONG_WAIT)
    yield
    for name in REPOSITORIES:
        page.get_by_role("button", name=f"Remove {name}").click()
        dialog = page.get_by_role("dialog", name=f"Remove {name}?")
        dialog.get_by_role("button", name=f"Remove {name}").click()
        expect(page.locator("#roots [data-row]").filter(has_text=name)).to_have_count(0)
        shutil.rmtree(product.repos / name)
    page.context.close()


def test_a_name_is_looked_up_as_it_is_typed(index: None, open_page: OpenPage) -> None:
    page = open_page("/search")
    page.get_by_label("Symbols").check()
    expect(page).to_have_url(re.compile("mode=symbols"))
    length = page.evaluate("history.length")
    field = page.get_by_label("Search code")
    field.press_sequentially("RetryPolicy")
    expect(page.locator(".hit").first).to_contain_text("class RetryPolicy")
    expect(page).to_have_url(re.compile(r"q=RetryPolicy.*mode=symbols"))
    assert page.evaluate("history.length") == length
    expect(field).to_be_focused()


def test_results_are_reached_and_opened_by_keys(index: None, open_page: OpenPage) -> None:
    page = open_page("/search?mode=symbols&q=should_retry")
    page.get_by_label("Search code").press("ArrowDown")
    expect(page.locator(".hit [data-row-focus]").first).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(".use").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".line.is-cited")).to_contain_text("should_retry")


def test_filters_narrow_and_are_in_the_address(index: None, open_page: OpenPage) -> None:
    page = open_page("/search?mode=symbols&q=retry")
    page.get_by_role("checkbox", name="tide").check()
    expect(page).to_have_url(re.compile("repository=tide"))
    page.get_by_label("Language").select_option("javascript")
    expect(page).to_have_url(re.compile("repository=tide&language=javascript"))
    expect(page.locator(".hit")).to_have_count(1)
    page.get_by_label("Path begins with").fill("src/")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing is named")).to_be_visible()
    page.get_by_role("link", name="Search without filters").click()
    expect(page.get_by_role("checkbox", name="tide")).not_to_be_checked()


def test_a_facet_narrows_and_leads_back(index: None, open_page: OpenPage) -> None:
    page = open_page("/search?q=retry")
    facets = page.get_by_role("complementary", name="Narrow the results")
    facets.get_by_role("link", name=re.compile("^lamp")).click()
    expect(page).to_have_url(re.compile("repository=lamp"))
    expect(page.locator(".hit .dir").first).to_contain_text("lamp/")
    facets.locator("[aria-current]").click()
    expect(page).not_to_have_url(re.compile("repository="))


def test_the_outline_leads_to_a_line_in_the_window_and_beyond(
    index: None, open_page: OpenPage
) -> None:
    page = open_page("/ui/retrieval/source?repo=tide&path=src/tide.py")
    outline = page.get_by_role("navigation", name="Outline of tide.py")
    outline.get_by_title("function step_3, line 13").click()
    expect(page.locator("[name=L13]")).to_be_in_viewport()
    outline.get_by_title("function step_450, line 1801").click()
    expect(page.locator("[name=L1801]")).to_be_in_viewport()


def test_on_a_phone_the_outline_is_a_select(index: None, open_page: OpenPage) -> None:
    page = open_page("/ui/retrieval/source?repo=tide&path=src/tide.py", size=PHONE)
    expect(page.get_by_role("navigation", name="Outline of tide.py")).to_be_hidden()
    jump = page.get_by_label("Go to a definition")
    jump.select_option(label="function step_60")
    expect(page.locator("[name=L241]")).to_be_in_viewport()
    jump.select_option(label="function step_450")
    expect(page.locator("[name=L1801]")).to_be_in_viewport()


ADDRESSES = (
    "/search?q=retry",
    "/search?mode=symbols&q=should_retry",
    "/search?mode=symbols&q=nowhere&language=python",
    "/ui/retrieval/source?repo=lamp&path=src/retry.py&start=8&end=9",
)


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_axe_has_no_objections(index: None, look: OpenPage, variant: str, address: str) -> None:
    size, dark = VARIANTS[variant]
    page = look(address, size=size, dark=dark)
    page.wait_for_load_state("networkidle")
    # A line's number is as high as the line of code it stands in: WCAG 2.5.8 exempts such targets.
    assert [found for found in objections(page) if 'class="ln"' not in found] == []


@pytest.mark.parametrize("size", [(320, 700), (375, 812), (768, 1024), WIDE])
def test_no_page_scrolls_sideways(index: None, look: OpenPage, size: tuple[int, int]) -> None:
    for address in ADDRESSES:
        page = look(address, size=size)
        assert wider(page) == 0, address


def wider(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))
