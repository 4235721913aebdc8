"""A notebook and the outline of an API in the code browser."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.axe import objections_of_looks
from tests.browser.chromium import PHONE, WIDE
from tests.browser.conftest import OpenPage
from tests.browser.narrow import sideways_at
from tests.browser.product import Product
from tests.browser.repository import ingested
from tests.support.notebooks import API, FILES, line_of

NOTEBOOK = "/code/books/churn.ipynb"


@pytest.fixture(scope="module")
def books(product: Product) -> Iterator[None]:
    with ingested(product, "books", {**FILES, "api.json": json.dumps(API, indent=2)}):
        yield


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_a_citation_opens_a_notebook_at_its_cell(
    books: None, look: OpenPage, size: tuple[int, int]
) -> None:
    line = line_of("churn.ipynb", "def churn_probability")
    page = look(f"{NOTEBOOK}?lines={line}-{line + 2}", size=size)
    expect(page.get_by_text("Cell 2, lines 6–8")).to_be_visible()
    cell = page.get_by_role("region", name="Cell 2, python")
    expect(cell.locator(".is-cited")).to_have_count(3)
    expect(cell.locator(".is-cited").first).to_be_in_viewport()
    expect(page.get_by_role("heading", name="Churn model")).to_be_visible()
    expect(page.get_by_text("Outputs are not ingested")).to_be_visible()
    assert not sideways_at(page, [PHONE[0], 800, WIDE[0]])
    assert not objections_of_looks(page)


def test_the_outline_and_the_switch_lead_to_places(books: None, look: OpenPage) -> None:
    page = look(NOTEBOOK)
    outline = page.get_by_role("navigation", name="Outline of churn.ipynb")
    outline.get_by_role("link", name="ChurnModel").click()
    expect(page.locator(".line", has_text="class ChurnModel:")).to_be_in_viewport()
    page.get_by_role("link", name="Source", exact=True).click()
    expect(page).to_have_url(re.compile("view=source"))
    expect(page.locator(".viewer__code")).to_contain_text('"nbformat": 4')
    page.get_by_role("link", name="Cells", exact=True).click()
    expect(page.get_by_role("region", name="Cell 1, Markdown")).to_be_visible()


def test_the_operations_of_an_api_are_its_outline(books: None, look: OpenPage) -> None:
    page = look("/code/books/api.json")
    outline = page.get_by_role("navigation", name="Outline of api.json")
    outline.get_by_role("link", name="DELETE /pets/{id}").click()
    expect(page.locator(".line", has_text='"delete": {')).to_be_in_viewport()
