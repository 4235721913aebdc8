"""What each page asks for, and what that weighs on the wire."""

from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.chromium import new_context
from tests.browser.product import running
from tests.browser.weight import LONG_FILE, OURS, cold_and_warm, weighed_pages

# With an empty cache and again; bytes of our JavaScript; bytes of a file of 1,600 lines.
COLD, WARM, SCRIPTS, CODE = 24, 3, 30_000, 120_000


def test_each_page_is_light(browser: Browser, tmp_path: Path) -> None:
    heavy = {}
    with running(tmp_path) as product:
        context = new_context(browser, product.url)
        page = context.new_page()
        with weighed_pages(product, page) as paths:
            for name, path in paths.items():
                cold, warm = cold_and_warm(page, path)
                code = warm.bytes(path) if path == LONG_FILE else 0
                weight = (cold.requests, warm.requests, cold.bytes(OURS), code)
                if any(a > b for a, b in zip(weight, (COLD, WARM, SCRIPTS, CODE), strict=True)):
                    heavy[name] = (weight, [*cold.urls.values()], [*warm.urls.values()])
        context.close()
    assert heavy == {}
