"""A repository that the tests of a file share."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect

from tests.browser.product import Product
from tests.support.ingested import write_files

LONG_WAIT = 60_000


@contextmanager
def ingested(
    browser: Browser, product: Product, name: str, files: Mapping[str, str | bytes]
) -> Iterator[Page]:
    """The ingest page, on which it has been ingested; it is removed in the end."""
    folder = write_files(product.repos / name, files)
    with browser.new_context(base_url=product.url) as context:
        page = context.new_page()
        page.goto("/ingest")
        page.get_by_label("Folder path").fill(str(folder))
        page.get_by_label("Display name").fill(name)
        page.get_by_role("button", name="Start ingest").click()
        row = page.locator("#roots [data-row]").filter(has_text=name)
        expect(row).to_contain_text("Completed", timeout=LONG_WAIT)
        yield page
        page.get_by_role("button", name=f"Remove {name}").click()
        page.get_by_role("dialog").get_by_role("button", name=f"Remove {name}").click()
        expect(row).to_have_count(0, timeout=LONG_WAIT)
    shutil.rmtree(folder)
