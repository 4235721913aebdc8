"""The Connect page: what it copies, and the test of the connection from its own origin."""

import json
import re
from pathlib import Path

from playwright.sync_api import Browser, Page, Request, expect

from tests.browser.axe import objections_of_looks
from tests.browser.chromium import Complaints, clipboard, go, new_context
from tests.browser.conftest import OpenPage
from tests.browser.narrow import sideways_at
from tests.browser.product import Product, running

TOOLS = re.compile("^codeinfo .* tools: .*VectorSearch.*reingest_repository")
ERAS = ("2025-11-25", "2026-07-28")
TIME = re.compile(r"^[\d,]+ ms$")


def run_test(page: Page) -> None:
    page.get_by_role("button", name="Test connection").click()
    expect(page.locator("[data-test-results]").get_by_role("listitem")).to_have_count(6)
    expect(page.locator("[data-test-results][aria-busy]")).to_have_count(0)


def result(page: Page, title: str) -> tuple[str, str]:
    """The text and the badge of one row of the test."""
    heading = page.get_by_role("heading", name=title)
    row = page.locator("[data-test-results]").get_by_role("listitem").filter(has=heading)
    return row.locator("p").inner_text(), row.locator(".badge").inner_text()


def test_every_endpoint_is_tested_with_both_protocols_from_the_pages_origin(
    open_page: OpenPage, product: Product, complaints: Complaints
) -> None:
    page = open_page("/connect")
    requests: list[Request] = []
    page.on("request", lambda request: requests.append(request))
    run_test(page)
    handshake, stateless = ERAS
    text, _ = result(page, f"Search · {handshake}")
    assert TOOLS.search(text), text
    text, _ = result(page, f"Question · {handshake}")
    assert text.startswith("codeinfo-chat ")
    assert "codebase_question" in text
    text, _ = result(page, f"Agents · {handshake}")
    assert text.startswith("codeinfo-agents ")
    for endpoint in ("Search", "Question", "Agents"):
        assert TIME.search(result(page, f"{endpoint} · {handshake}")[1])
        text, badge = result(page, f"{endpoint} · {stateless}")
        assert text == "Same server and tools"
        assert TIME.search(badge), badge
    posts = [request for request in requests if request.method == "POST"]
    assert {request.url for request in posts} == {
        f"{product.url}/mcp",
        f"{product.url}/mcp/chat",
        f"{product.url}/mcp/agents",
    }
    methods = [json.loads(request.post_data or "{}")["method"] for request in posts[:5]]
    assert methods == [
        "initialize",
        "notifications/initialized",
        "tools/list",
        "server/discover",
        "tools/list",
    ]


def test_with_a_token_the_test_sends_the_one_that_was_typed(
    browser: Browser, tmp_path: Path
) -> None:
    config = {"CODEINFO_MCP_TOKEN": "the-secret", "CODEINFO_MCP_PROVIDER": "builtin"}
    with running(tmp_path, **config) as guarded:
        page = new_context(browser, guarded.url).new_page()
        go(page, "/connect")
        run_test(page)
        for endpoint in ("Search", "Question"):
            for era in ERAS:
                text, badge = result(page, f"{endpoint} · {era}")
                assert text.startswith("The server asks for the token")
                assert badge == "Failed"
        page.get_by_label("Token").fill("the-secret")
        run_test(page)
        assert TOOLS.search(result(page, f"Search · {ERAS[0]}")[0])
        assert result(page, f"Search · {ERAS[1]}")[0] == "Same server and tools"
        question, _ = result(page, f"Question · {ERAS[0]}")
        assert question.endswith("1 tool: codebase_question")
        page.context.close()


def test_an_unreachable_server_is_explained(open_page: OpenPage, complaints: Complaints) -> None:
    complaints.expected.append("net::ERR_FAILED")
    page = open_page("/connect")
    page.route("**/mcp**", lambda route: route.abort())
    run_test(page)
    assert result(page, f"Search · {ERAS[0]}") == (
        "No answer: this page cannot reach the server. Is it still running?",
        "Failed",
    )


def test_a_malformed_response_is_explained(open_page: OpenPage, complaints: Complaints) -> None:
    complaints.expected.append("status of 502")
    page = open_page("/connect")
    page.route("**/mcp**", lambda route: route.fulfill(status=502, body="<html>Bad gateway"))
    run_test(page)
    text, _ = result(page, f"Search · {ERAS[1]}")
    assert text == "The answer was 502, not in MCP. Is there a proxy in between?"


def test_clients_and_endpoints_are_chosen_and_copied(open_page: OpenPage, product: Product) -> None:
    page = open_page("/connect")
    clients = page.get_by_role("navigation", name="Client")
    clients.get_by_role("link", name="Cursor").click()
    page.wait_for_url("**client=cursor")
    expect(clients.get_by_role("link", name="Cursor")).to_have_attribute("aria-current", "true")
    expect(clients.get_by_role("link", name="Cursor")).to_be_focused()
    page.get_by_role("navigation", name="Endpoint").get_by_role("link", name="Question").click()
    page.wait_for_url("**endpoint=question&client=cursor")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    copied = json.loads(clipboard(page))
    url = f"{product.url}/mcp/chat"
    assert copied == {"mcpServers": {"codeinfo-question": {"url": url}}}


def test_a_finished_test_is_no_obstacle(open_page: OpenPage) -> None:
    page = open_page("/connect?endpoint=question&client=vs-code")
    run_test(page)
    assert objections_of_looks(page) == []
    assert sideways_at(page, (375, 390, 1440)) == {}
