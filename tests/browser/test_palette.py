"""The command palette in a browser: what it finds, opens and asks, and what it says."""

import re
import shutil
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.browser.axe import objections, objections_of_looks
from tests.browser.chromium import PHONE, WIDE, Complaints, go, new_context
from tests.browser.conftest import OpenPage
from tests.browser.conversations import made, remove
from tests.browser.product import Product
from tests.browser.repository import LONG_WAIT, ingested
from tests.support.ingested import SAMPLE, write_files


@pytest.fixture(scope="module")
def index(browser: Browser, product: Product) -> Iterator[None]:
    """The repository `lantern`, and a conversation; gone after the tests of this file."""
    with (
        ingested(product, "lantern", SAMPLE),
        new_context(browser, product.url) as context,
    ):
        page = context.new_page()
        conversation = made(page, "Ships at night")
        turn = {"role": "user", "content": "How are beacons lit?", "status": "ok"}
        answer = page.request.post(
            f"/conversations/{conversation}/turns",
            data={**turn, "provider": "builtin", "model": "search"},
        )
        assert answer.status == 201
        yield
        remove(page, [conversation])


def palette(page: Page, text: str = "") -> Locator:
    """The palette, opened, with a text typed into it."""
    page.keyboard.press("Control+k")
    page.keyboard.type(text)
    return page.get_by_role("dialog", name="Command palette")


def answered(dialog: Locator) -> Locator:
    """The palette, once both of its requests are answered."""
    expect(dialog.locator("#palette-status")).to_have_text(re.compile("found|Nothing matches"))
    return dialog


def group(dialog: Locator, name: str) -> Locator:
    return dialog.get_by_role("group", name=name)


def test_on_a_phone_its_foot_takes_no_room_without_text(open_page: OpenPage) -> None:
    dialog = palette(open_page("/", size=PHONE))
    foot = dialog.locator(".palette__foot")
    assert foot.evaluate("foot => foot.offsetHeight") == 0
    dialog.get_by_role("combobox").fill("zebra crossing")
    expect(foot).to_contain_text("Nothing matches")
    assert foot.evaluate("foot => foot.offsetHeight") >= 34


def test_it_finds_files_symbols_lines_and_meaning(index: None, open_page: OpenPage) -> None:
    dialog = answered(palette(open_page("/"), "should_retry"))
    expect(group(dialog, "Symbols").get_by_role("option")).to_contain_text(
        "RetryPolicy.should_retry"
    )
    exact = group(dialog, "Lines with exactly this").get_by_role("option")
    expect(exact.first).to_contain_text("src/retry.py:17")
    expect(exact.first.locator("mark")).to_have_text("should_retry")
    expect(group(dialog, "Lines by meaning").get_by_role("option").first).to_be_visible()
    titles = dialog.locator("[role=group]:visible .group-label").all_inner_texts()
    assert titles.index("Lines with exactly this") < titles.index("Lines by meaning")


def test_it_finds_repositories_and_files_and_opens_with_enter(
    index: None, open_page: OpenPage
) -> None:
    page = open_page("/")
    dialog = answered(palette(page, "lantern"))
    expect(group(dialog, "Repositories").get_by_role("option")).to_have_attribute(
        "href", "/code/lantern"
    )
    page.keyboard.press("Escape")
    dialog = answered(palette(page, "retry.py"))
    expect(dialog.locator(".is-current")).to_contain_text("src/retry.py")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("retry.py"))


def test_it_finds_conversations_by_what_was_said(index: None, open_page: OpenPage) -> None:
    page = open_page("/search")
    dialog = answered(palette(page, "beacons"))
    found = group(dialog, "Conversations").get_by_role("option")
    expect(found).to_contain_text("Ships at night")
    expect(found.locator("mark")).to_have_text("beacons")
    found.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ships at night")


def test_enter_before_the_answer_opens_what_then_comes_first(
    index: None, open_page: OpenPage
) -> None:
    page = open_page("/")
    palette(page, "RetryPolicy")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("retry.py.*lines=11"))


def test_ctrl_enter_asks_at_once(index: None, open_page: OpenPage) -> None:
    page = open_page("/search")
    palette(page, "how long until the next attempt")
    page.keyboard.press("Control+Enter")
    page.wait_for_url(re.compile(r"/chat\?c="))
    expect(page.locator(".turn h2")).to_contain_text("how long until the next attempt")
    expect(page.locator(".turn").get_by_text("Complete", exact=True)).to_be_visible()
    # The first citation may have opened, which the address then names, too.
    conversation = parse_qs(urlsplit(page.url).query)["c"][0]
    # The address alone asks nothing.
    go(page, "/chat?q=how+long+until+the+next+attempt")
    expect(page.get_by_label("Message", exact=True)).to_have_value(re.compile("how long"))
    expect(page.locator(".turn")).to_have_count(0)
    remove(page, [conversation])


def test_conversations_are_filtered_by_the_repository_they_are_about(
    index: None, open_page: OpenPage
) -> None:
    page = open_page("/chat")
    question = {"message": "How is a retry limited?", "conversationId": "about-lantern"}
    fields = {"provider": "builtin", "model": "search"}
    assert page.request.post("/chat", data=question | fields).status == 202
    rows = page.locator("#convos [data-row]")
    expect(rows.filter(has_text="How is a retry limited?")).to_have_count(1)
    expect(rows.filter(has_text="Ships at night")).to_have_count(1)
    # Its search found something in this repository.
    page.locator("#f-repo").select_option("lantern")
    expect(rows.filter(has_text="Ships at night")).to_have_count(0)
    expect(rows.filter(has_text="How is a retry limited?")).to_have_count(1)
    assert objections(page) == []
    remove(page, ["about-lantern"])


def test_it_says_when_nothing_matches(index: None, open_page: OpenPage) -> None:
    page = open_page("/")
    dialog = palette(page, "zzyzx quux")
    status = dialog.locator("#palette-status")
    expect(status).to_have_text("Nothing matches “zzyzx quux”")
    expect(status).to_have_attribute("role", "status")
    # What is left is to search or to ask.
    expect(dialog.get_by_role("option")).to_have_count(2)
    dialog.get_by_role("option", name="Search code for").click()
    expect(page).to_have_url(re.compile(r"/search\?q=zzyzx\+quux"))


def test_an_answer_that_comes_late_is_dropped(index: None, open_page: OpenPage) -> None:
    page = open_page("/")
    held: list[Route] = []

    def hold(route: Route) -> None:
        if "q=lan&" in f"{route.request.url}&":
            held.append(route)
        else:
            route.continue_()

    page.route("**/ui/palette*", hold)
    dialog = palette(page, "lan")
    with page.expect_request(re.compile("q=lan$")):
        pass
    page.keyboard.type("xyzzy")
    expect(dialog.locator("#palette-status")).to_have_text("Nothing matches “lanxyzzy”")
    for route in held:
        route.fulfill(body='<a role="option" id="late">late</a>')
    page.keyboard.press("ArrowDown")
    expect(dialog.locator("#late")).to_have_count(0)
    expect(dialog.locator("#palette-status")).to_have_text("Nothing matches “lanxyzzy”")


def test_a_failure_is_told_and_the_next_letters_search_again(
    index: None, open_page: OpenPage, complaints: Complaints
) -> None:
    complaints.expected += ["htmx:sendError", "ERR_FAILED"]
    page = open_page("/")
    page.route("**/ui/palette*", lambda route: route.abort())
    dialog = palette(page, "lant")
    expect(dialog.locator("#palette-status")).to_have_text(re.compile("The search failed"))
    page.unroute("**/ui/palette*")
    page.keyboard.type("ern")
    expect(group(answered(dialog), "Repositories").get_by_role("option")).to_have_text("lantern")


def test_it_answers_while_an_ingest_runs(
    index: None, open_page: OpenPage, product: Product
) -> None:
    files = {f"part_{n}.py": f"def part_{n}():\n    return {n}\n" for n in range(1500)}
    page = open_page("/ingest")
    page.get_by_label("Folder path").fill(str(write_files(product.repos / "busy", files)))
    page.get_by_label("Display name").fill("busy")
    page.get_by_role("button", name="Start ingest").click()
    expect(page.get_by_role("button", name="Cancel ingest")).to_be_visible()
    dialog = answered(palette(page, "should_retry"))
    expect(group(dialog, "Symbols").get_by_role("option").first).to_be_visible()
    expect(group(dialog, "Lines by meaning").get_by_role("option").first).to_be_visible()
    page.keyboard.press("Escape")
    row = page.locator("#roots [data-row]").filter(has_text="busy")
    expect(row).to_contain_text("Completed", timeout=LONG_WAIT)
    page.get_by_role("button", name="Remove busy").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove busy").click()
    expect(row).to_have_count(0)
    shutil.rmtree(product.repos / "busy")


def test_axe_has_no_objections(index: None, open_page: OpenPage) -> None:
    page = open_page("/")
    dialog = answered(palette(page, "retry"))
    assert objections_of_looks(page) == []
    dialog.get_by_label("Find or run").fill("zzyzx")
    answered(dialog)
    assert objections_of_looks(page) == []


@pytest.mark.parametrize("size", [(320, 700), PHONE, WIDE])
def test_it_fits(index: None, open_page: OpenPage, size: tuple[int, int]) -> None:
    page = open_page("/", size=size)
    dialog = answered(palette(page, "retry"))
    for part in (dialog, dialog.locator("#palette-list")):
        assert part.evaluate("box => box.scrollWidth <= box.clientWidth")
