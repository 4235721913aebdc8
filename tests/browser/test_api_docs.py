"""The page of the API: it shows the routes, sends requests, loads nothing from elsewhere, and axe
has no finding."""

from playwright.sync_api import Page, expect

from tests.browser.axe import objections_of_looks
from tests.browser.chromium import Complaints
from tests.browser.conftest import OpenPage
from tests.browser.product import Product


def test_a_request_can_be_sent_from_the_page(
    open_page: OpenPage, product: Product, complaints: Complaints
) -> None:
    page: Page = open_page("/connect")
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.get_by_role("link", name="HTTP API").click()
    route = page.locator(".opblock").filter(has_text="/version")
    route.locator(".opblock-summary-control").click()
    route.get_by_role("button", name="Try it out").click()
    route.get_by_role("button", name="Execute").click()
    answer = route.locator(".live-responses-table")
    expect(answer).to_contain_text('"server"')
    assert f"{product.url}/version" in requested
    elsewhere = [url for url in requested if not url.startswith((product.url, "data:"))]
    assert elsewhere == []
    assert objections_of_looks(page) == []
