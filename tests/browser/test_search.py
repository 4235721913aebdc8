"""The search page in a browser: symbols as one types, filters, keys, the outline of a file."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Route, expect

from tests.browser.axe import objections_of_looks
from tests.browser.chromium import PHONE, load_again
from tests.browser.conftest import OpenPage
from tests.browser.narrow import sideways_at
from tests.browser.product import Product
from tests.browser.repository import ingested
from tests.support.ingested import SAMPLE

DEEP = "".join(f"def step_{i}():\n    return {i}\n\n\n" for i in range(900))


@pytest.fixture(scope="module")
def index(product: Product) -> Iterator[None]:
    """Two repositories, ingested; gone after the tests of this file."""
    tide = {"src/tide.py": DEEP, "web/tide.js": "retry();\n"}
    with ingested(product, "lamp", SAMPLE), ingested(product, "tide", tide):
        yield


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


def test_results_are_reached_and_opened_by_keys(index: None, look: OpenPage) -> None:
    page = look("/search?mode=symbols&q=should_retry")
    page.get_by_label("Search code").press("ArrowDown")
    expect(page.locator(".hit [data-row-focus]").first).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(".use").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".line.is-cited")).to_contain_text("should_retry")


def test_filters_narrow_and_are_in_the_address(index: None, look: OpenPage) -> None:
    page = look("/search?mode=symbols&q=retry")
    page.get_by_role("checkbox", name="tide").check()
    expect(page).to_have_url(re.compile("repository=tide"))
    page.get_by_label("Language").select_option("javascript")
    expect(page).to_have_url(re.compile("repository=tide&language=javascript"))
    expect(page.locator(".hit")).to_have_count(1)
    page.get_by_label("Path begins with").fill("src/")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing is named")).to_be_visible()
    page.get_by_role("link", name="Search without file:src/").click()
    expect(page.locator(".hit")).to_have_count(1)
    expect(page.get_by_label("Path begins with")).to_have_value("")


def test_filters_typed_into_the_box_move_to_their_fields(index: None, look: OpenPage) -> None:
    page = look("/search?q=retry")
    field = page.get_by_label("Search code")
    field.fill("retry repo:TIDE lang:js file:web/")
    field.press("Enter")
    expect(field).to_have_value("retry")
    expect(page.get_by_role("checkbox", name="tide")).to_be_checked()
    expect(page.get_by_label("Language")).to_have_value("javascript")
    expect(page.get_by_label("Path begins with")).to_have_value("web/")
    expect(page.locator(".hit")).to_have_count(1)
    expect(page).to_have_url(
        re.compile(r"q=retry&repository=tide&language=javascript&path=web%2F&limit=10$")
    )
    # The fields are heard as before.
    page.get_by_label("Language").select_option("")
    expect(page).to_have_url(re.compile("language=&"))
    load_again(page)
    expect(field).to_have_value("retry")
    expect(page.get_by_role("checkbox", name="tide")).to_be_checked()


def test_what_is_typed_after_a_search_is_sent_stays(index: None, open_page: OpenPage) -> None:
    page = open_page("/search")
    held: list[Route] = []
    page.route("**/search?*", lambda route: held.append(route))
    field = page.get_by_label("Search code")
    field.fill("retry lang:python")
    with page.expect_request("**/search?*"):
        field.press("Enter")
    field.press_sequentially(" and more")
    held[0].continue_()
    expect(page.locator(".hit").first).to_be_visible()
    expect(field).to_have_value("retry lang:python and more")


def test_exact_text_expressions_and_words_to_leave_out(index: None, look: OpenPage) -> None:
    page = look("/search")
    field = page.get_by_label("Search code")
    field.fill('"attempt < self.limit"')
    field.press("Enter")
    expect(page.locator(".hit")).to_have_count(1)
    expect(page.locator(".hit mark").first).to_be_visible()
    field.fill(r"/def step_8\d\d\(/ -step_801")
    field.press("Enter")
    count = page.get_by_role("status").filter(has_text="99 lines in 1 file · 1 to 10")
    expect(count).to_be_visible()
    expect(page.locator(".hit").nth(1)).to_contain_text("step_802")
    field.fill("retry /(oops/")
    field.press("Enter")
    expect(page.get_by_role("note").filter(has_text="/(oops/: missing )")).to_be_visible()
    expect(field).to_have_value("retry /(oops/")


def test_conditions_are_joined_and_files_listed(index: None, look: OpenPage) -> None:
    page = look("/search")
    field = page.get_by_label("Search code")
    field.fill("(sym:step_7 OR sym:RetryPolicy) -lang:js")
    field.press("Enter")
    expect(page.locator(".hit")).to_have_count(2)
    expect(page.locator(".results__title")).to_have_count(2)
    assert sideways_at(page, PHONE[:1]) == {}
    field.fill("type:file retry")
    field.press("Enter")
    expect(page.locator(".found-files li").first).to_contain_text("tide.js")
    expect(page.locator(".hit")).to_have_count(0)
    assert objections_of_looks(page) == []


def test_pages_lead_on_and_back(index: None, look: OpenPage) -> None:
    page = look('/search?q="return"&limit=5')
    first = page.locator(".hit").first.get_attribute("data-row")
    page.get_by_role("link", name="Next page").click()
    expect(page.get_by_label("Line 6", exact=True)).to_be_visible()
    page.get_by_role("link", name="Previous page").click()
    expect(page.locator(".hit").first).to_have_attribute("data-row", first or "")


def test_why_each_matched_is_beneath_it(index: None, look: OpenPage) -> None:
    page = look("/search?q=backoff+delay")
    why = page.locator(".hit__why").first
    expect(why).to_contain_text(re.compile(r"Words\s+backoff ×\d+, delay ×\d+, rank 1"))
    expect(why).to_contain_text(re.compile(r"Meaning\s+rank \d+"))


def test_a_filter_that_excludes_everything_is_named(index: None, look: OpenPage) -> None:
    page = look("/search?q=backoff_delay+lang:javascript+-zebra")
    named = page.locator(".excluded")
    expect(named).to_contain_text(re.compile(r"lang:javascript excludes all \d+ match"))
    named.get_by_role("link").first.click()
    expect(page.locator(".hit").first).to_contain_text("backoff_delay")


def test_a_wide_window_shows_the_lines_of_the_current_result(index: None, look: OpenPage) -> None:
    page = look("/search?q=retry", size=(1600, 900))
    preview = page.get_by_role("complementary", name="Preview")
    expect(preview.locator(".is-cited").first).to_be_visible()
    assert page.locator(".page").evaluate("box => box.scrollTop") == 0
    page.get_by_label("Search code").press("ArrowDown")
    page.keyboard.press("j")
    second = page.locator(".hit").nth(1)
    expect(second).to_have_class(re.compile("is-current"))
    name = second.locator(".hit__head .path").inner_text().rpartition("/")[2].partition(":")[0]
    expect(preview.locator(".viewer__head .path")).to_contain_text(name)
    left, right = page.locator(".results__list").bounding_box(), preview.bounding_box()
    assert left is not None and right is not None
    assert left["width"] > 500 and right["x"] + right["width"] > 1560
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(preview).to_be_hidden()


def test_a_facet_narrows_and_leads_back(index: None, look: OpenPage) -> None:
    page = look("/search?q=retry")
    facets = page.get_by_role("complementary", name="Narrow the results")
    facets.get_by_role("link", name=re.compile("^lamp")).click()
    expect(page).to_have_url(re.compile("repository=lamp"))
    expect(page.locator(".hit .dir").first).to_contain_text("lamp/")
    facets.locator("[aria-current]").click()
    expect(page).not_to_have_url(re.compile("repository="))


def test_the_outline_leads_to_a_line_in_the_window_and_beyond(index: None, look: OpenPage) -> None:
    page = look("/ui/retrieval/source?repo=tide&path=src/tide.py")
    outline = page.get_by_role("navigation", name="Outline of tide.py")
    outline.get_by_title("function step_3, line 13").click()
    expect(page.locator("[name=L13]")).to_be_in_viewport()
    outline.get_by_title("function step_450, line 1801").click()
    expect(page.locator("[name=L1801]")).to_be_in_viewport()


def test_on_a_phone_the_outline_is_a_select(index: None, look: OpenPage) -> None:
    page = look("/ui/retrieval/source?repo=tide&path=src/tide.py", size=PHONE)
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
    "/search?q=backoff_delay+lang:javascript",
    '/search?q="return"',
    "/search?q=x+lang:",
    "/search",
    "/ui/retrieval/source?repo=lamp&path=src/retry.py&start=8&end=9",
)


# The other addresses are states of the gallery. A wide one has a preview.
@pytest.mark.parametrize("address", [ADDRESSES[0], ADDRESSES[4], ADDRESSES[7]])
def test_axe_has_no_objections(index: None, look: OpenPage, address: str) -> None:
    page = look(address, size=(1600, 900))
    assert objections_of_looks(page, wide=(1600, 900)) == []


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_page_scrolls_sideways(index: None, look: OpenPage, address: str) -> None:
    assert sideways_at(look(address), (320, 375, 768, 1440, 1600)) == {}
