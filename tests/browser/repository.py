"""Repositories that the tests of a file share."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx

from tests.browser.product import Product
from tests.support.ingested import write_files
from tests.support.served import ingest_into
from tests.support.waiting import PATIENCE, wait_until

LONG_WAIT = 60_000


@contextmanager
def ingested(product: Product, name: str, files: Mapping[str, str | bytes]) -> Iterator[None]:
    """While the block runs, it is ingested."""
    folder = write_files(product.repos / name, files)
    ingest_into(product, folder)
    yield
    remove(product, folder)


def remove(product: Product, folder: Path) -> None:
    """The folder, and its root if it has one, as soon as no run is under way."""

    def removed() -> bool:
        answer = httpx.post(
            f"{product.url}/ingest/remove/{quote(str(folder), safe='')}", timeout=PATIENCE
        )
        assert answer.status_code in (200, 404, 429), answer.text
        return answer.status_code != 429

    wait_until(removed, LONG_WAIT // 1000)
    # That of a ref goes with its root.
    shutil.rmtree(folder, ignore_errors=True)
