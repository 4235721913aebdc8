"""The Logs page in a browser: live, filtered, opened, interrupted, and under load."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.axe import objections_of_looks
from tests.browser.chromium import Complaints, go, load_again
from tests.browser.conftest import OpenPage
from tests.browser.product import Product
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support.waiting import PATIENCE

Send = Callable[..., None]
LIVE = "[data-log-state]"


@pytest.fixture
def send(product: Product) -> Send:
    """send("text", "text", level=…): entries into the log, as programs send them."""

    def post(*messages: str, level: str = "info", **more: Any) -> None:
        moment = datetime.now(UTC).isoformat()
        entry = {"level": level, "timestamp": moment, "source": "client", **more}
        batch = [{**entry, "message": message} for message in messages]
        answer = httpx.post(f"{product.url}/logs", json=batch, timeout=30)
        assert answer.status_code == 202, answer.text

    return post


@pytest.fixture(autouse=True)
def streams_end(complaints: Complaints) -> None:
    """htmx says so on the console when a stream ends, as it does with its page, and when a list is
    asked for while another is on its way."""
    complaints.expected += ["[object Event]", "htmx:sendAbort", "htmx:afterRequest"]


def lines(page: Page) -> Any:
    return page.locator("#log-list [data-entry]")


def line(page: Page, text: str) -> Any:
    return lines(page).filter(has=page.get_by_role("cell", name=text, exact=True))


def test_lines_come_as_they_are_written_newest_first(open_page: OpenPage, send: Send) -> None:
    page = open_page("/logs")
    expect(page.locator(LIVE)).to_have_text("Live")
    send("first one", "second one")
    expect(line(page, "second one")).to_be_visible()
    texts = lines(page).all_inner_texts()
    at = [next(i for i, t in enumerate(texts) if name in t) for name in ("second one", "first one")]
    assert at == sorted(at)
    page.get_by_role("button", name="Send sample log").click()
    expect(line(page, "Sample log").first).to_contain_text("client")


def test_the_chart_counts_the_lines_that_come(open_page: OpenPage, send: Send) -> None:
    page = open_page("/logs?text=tide+gauge")
    chart = page.get_by_role("region", name="Lines over time").get_by_role("img")
    expect(page.locator(LIVE)).to_have_text("Live")
    expect(chart).to_have_count(0)
    send("tide gauge one", "tide gauge two")
    send("tide gauge three", level="error")
    expect(line(page, "tide gauge three")).to_be_visible()
    expect(chart).to_have_accessible_name(re.compile("3 lines, 1 error$"))
    expect(page).to_have_url(re.compile(r"/logs\?text=tide\+gauge$"))


def test_a_line_opens_and_waits_for_its_reader(open_page: OpenPage, send: Send) -> None:
    send("look closer", context={"path": "/a <b>", "inner": {"n": 5}}, requestId="req-77")
    page = open_page("/logs?text=look+closer")
    row = line(page, "look closer").first
    expect(row).to_contain_text("path /a <b> · inner.n 5")
    row.get_by_role("button", name="Context of look closer").click()
    expect(row.get_by_label("Entry")).to_contain_text('"requestId": "req-77"')
    before = lines(page).count()
    send("look closer, later")
    expect(page.get_by_text("New lines wait while a line is open.")).to_be_visible()
    expect(lines(page)).to_have_count(before)
    page.get_by_role("button", name="Show them").click()
    expect(line(page, "look closer, later")).to_be_visible()
    line(page, "look closer").first.get_by_role("button", name=re.compile("^Context")).click()
    page.get_by_role("link", name="Only this request").click()
    expect(page).to_have_url(re.compile("text=req-77"))
    expect(page.get_by_label("Search text")).to_have_value("req-77")
    expect(lines(page)).to_have_count(1)


def test_filters_are_in_the_address_and_hold_while_live(open_page: OpenPage, send: Send) -> None:
    send("filter me", level="error")
    page = open_page("/logs")
    for level in ("WARN", "INFO", "DEBUG"):
        page.get_by_role("checkbox", name=level).uncheck()
    expect(page).to_have_url(re.compile("level=error&"))
    page.get_by_label("Search text").fill("filter me")
    expect(page).to_have_url(re.compile("text=filter\\+me"))
    expect(line(page, "filter me").first).to_be_visible()
    expect(page.locator(LIVE)).to_have_text("Live")
    send("filter me not", level="warn")
    send("filter me too", level="error")
    expect(line(page, "filter me too")).to_be_visible()
    expect(line(page, "filter me not")).to_have_count(0)
    load_again(page)
    expect(page.get_by_label("INFO")).not_to_be_checked()
    expect(line(page, "filter me too")).to_be_visible()
    page.get_by_label("Search text").fill("nobody ever wrote this")
    expect(page.get_by_text("No line matches these filters.")).to_be_visible()
    page.get_by_role("link", name="Clear filters").click()
    expect(page).to_have_url(re.compile("/logs$"))


def test_without_live_it_changes_only_when_asked(open_page: OpenPage, send: Send) -> None:
    page = open_page("/logs")
    page.get_by_role("switch", name="Live").uncheck()
    expect(page.locator(LIVE)).to_have_text("Paused")
    expect(page).to_have_url(re.compile("live=off"))
    send("while it slept")
    expect(line(page, "while it slept")).to_have_count(0)
    page.get_by_role("button", name="Refresh now").click()
    expect(line(page, "while it slept")).to_be_visible()
    page.get_by_role("button", name="Send sample log").click()
    expect(line(page, "Sample log").first).to_be_visible()


@pytest.mark.fault("The log breaks off")
def test_an_interrupted_stream_comes_back_without_a_gap(
    open_page: OpenPage, send: Send, complaints: Complaints
) -> None:
    complaints.expected.append("status of 502")
    page = open_page("/")
    page.route("**/ui/logs/stream*", lambda route: route.fulfill(status=502))
    go(page, "/logs")
    expect(page.locator(LIVE)).to_have_text("Reconnecting…")
    expect(page.get_by_text("Live updates are interrupted.")).to_be_visible()
    send("in the meantime")
    page.unroute("**/ui/logs/stream*")
    expect(page.locator(LIVE)).to_have_text("Live")
    expect(page.get_by_text("Live updates are interrupted.")).to_be_hidden()
    expect(line(page, "in the meantime")).to_have_count(1)
    send("and after")
    expect(line(page, "and after")).to_have_count(1)


@pytest.mark.fault("The log breaks off")
def test_under_load_it_keeps_the_last_50_and_stays_usable(open_page: OpenPage, send: Send) -> None:
    page = open_page("/logs?text=load")
    expect(page.locator(LIVE)).to_have_text("Live")
    for burst in range(10):
        send(*(f"load {burst}.{n}" for n in range(25)))
    expect(line(page, "load 9.24")).to_be_visible()
    expect(lines(page)).to_have_count(50)
    expect(line(page, "load 8.0")).to_have_count(1)
    # The next page begins where this one ends, although that has moved since it was opened.
    page.get_by_role("link", name="Older lines").click()
    expect(line(page, "load 7.24")).to_be_visible()
    expect(lines(page)).to_have_count(50)
    expect(page.locator(LIVE)).to_have_text("Paused")
    page.get_by_role("link", name="Newest lines").click()
    expect(page.locator(LIVE)).to_have_text("Live")
    page.get_by_label("Search text").fill("load 9.7")
    expect(lines(page)).to_have_count(1)


@pytest.mark.fault("The log breaks off")
def test_a_burst_says_how_many_lines_were_skipped(open_page: OpenPage, send: Send) -> None:
    page = open_page("/logs?text=flood")
    expect(page.locator(LIVE)).to_have_text("Live")
    skipped = page.locator("#log-list").get_by_text(re.compile(r"^\d+ lines? skipped$"))
    # Another entry may have woken the stream, which then reads the burst in two halves.
    for burst in range(5):
        send(*(f"flood {burst}.{n}" for n in range(300)))
        expect(line(page, f"flood {burst}.299")).to_be_visible()
        if skipped.count():
            break
    expect(skipped).to_be_visible()
    expect(lines(page)).to_have_count(50)
    send("flood is over")
    expect(line(page, "flood is over")).to_be_visible()
    expect(lines(page)).to_have_count(50)


def test_errors_of_a_page_are_sent_to_the_log(
    open_page: OpenPage, product: Product, complaints: Complaints
) -> None:
    complaints.expected.append("Broken on purpose")
    page = open_page("/search?q=what+somebody+asked")
    with page.expect_response("**/ui/logs/entries") as answered:
        page.evaluate("setTimeout(() => { throw new Error('Broken on purpose'); })")
    assert answered.value.status == 202
    found = httpx.get(
        f"{product.url}/logs?source=client&text=broken+on+purpose", timeout=PATIENCE
    ).json()["items"]
    entry = found[-1]
    assert (entry["level"], entry["route"], entry["url"]) == (
        "error",
        "/search",
        f"{product.url}/search",
    )
    assert entry["correlationId"] and entry["context"]["clientId"] and entry["userAgent"]
    assert "somebody" not in json.dumps(entry)


def test_tool_events_of_a_chat_are_sent_to_the_log_without_what_was_asked(
    open_page: OpenPage, product: Product, stand_in: OpenAIStandIn
) -> None:
    page = open_page("/chat")
    page.get_by_label("Model").select_option("tool")
    page.get_by_label("Message").fill("what somebody asked")
    with page.expect_response("**/ui/logs/entries") as answered:
        page.get_by_label("Message").press("Enter")
    assert answered.value.status == 202
    found = httpx.get(
        f"{product.url}/logs?source=client&text=client-chat", timeout=PATIENCE
    ).json()["items"]
    entry = found[-1]
    assert (entry["source"], entry["context"]["channel"]) == ("client", "client-chat")
    assert (entry["message"], entry["context"]["name"]) == ("chat tool event", "VectorSearch")
    assert entry["context"]["stage"] in ("running", "failed") and entry["context"]["callId"]
    assert "somebody" not in json.dumps(entry)


def test_errors_that_cannot_be_sent_are_sent_later(
    open_page: OpenPage, product: Product, complaints: Complaints
) -> None:
    complaints.expected += ["Told later", "status of 503"]
    page = open_page("/search")
    tries: list[str] = []

    def refuse_twice(route: Route) -> None:
        tries.append(route.request.post_data or "")
        if len(tries) < 3:
            route.fulfill(status=503)
        else:
            route.continue_()

    page.route("**/ui/logs/entries", refuse_twice)
    with page.expect_response(lambda answer: answer.status == 202):
        page.evaluate("setTimeout(() => { throw new Error('Told later'); })")
    assert len(tries) == 3 and len(set(tries)) == 1
    found = httpx.get(f"{product.url}/logs?source=client&text=told+later", timeout=PATIENCE).json()
    assert len(found["items"]) == 1


def test_axe_has_no_objections(look: OpenPage, send: Send) -> None:
    send("an error to look at", level="error", context={"traceback": "Traceback:\n  x"})
    page = look("/logs?text=error+to+look")
    expect(page.locator(LIVE)).to_have_text("Live")
    opener = page.get_by_role("button", name="Context of an error to look at").first
    opener.click()
    expect(page.get_by_label("Traceback").first).to_be_visible()
    assert objections_of_looks(page) == []


@pytest.mark.parametrize("size", [(320, 700), (768, 1024), (1280, 800)])
def test_it_fits(look: OpenPage, send: Send, size: tuple[int, int]) -> None:
    send("x" * 300, context={"y" * 100: "z" * 300})
    page = look("/logs?text=zzzz", size=size)
    lines(page).first.get_by_role("button").first.click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
