"""Requests and bytes on the wire of each page, with an empty cache and again.

    python -m benchmarks.weight          serves a sample repository, and opens the pages in Chromium

Prints one table. Websockets do not count.
"""

# ruff: noqa: E402 - the fixtures read the project's settings when they are imported

import os
import sys
import tempfile
from pathlib import Path

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"

import django

django.setup()

from playwright.sync_api import Page

from tests.browser.chromium import chromium, new_context
from tests.browser.product import running
from tests.browser.weight import OURS, cold_and_warm, weighed_pages


def main() -> int:
    print("| page | requests, cold | warm | kB, cold | warm | JavaScript of ours, kB |")
    print("| --- | --- | --- | --- | --- | --- |")
    with (
        tempfile.TemporaryDirectory(prefix="codeinfo-weight-") as folder,
        chromium() as browser,
        running(Path(folder)) as product,
    ):
        page = new_context(browser, product.url).new_page()
        with weighed_pages(product, page) as paths:
            for name, path in paths.items():
                row(name, page, path)
    return 0


def row(name: str, page: Page, path: str) -> None:
    cold, warm = cold_and_warm(page, path)
    sizes = (cold.bytes(), warm.bytes(), cold.bytes(OURS))
    columns = (name, cold.requests, warm.requests, *(f"{size / 1_000:.1f}" for size in sizes))
    print("|", " | ".join(map(str, columns)), "|", flush=True)


if __name__ == "__main__":
    sys.exit(main())
