"""Ingests by a running server, as a client of its API starts and follows them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from apps.embedding.catalogue import DEFAULT_MODEL
from tests.browser.product import Product
from tests.support.waiting import PATIENCE, wait_until

# Seconds that an ingest may take.
LONG = 10 * PATIENCE


def start_ingest(
    product: Product, folder: Path, *, name: str = "", model: str = DEFAULT_MODEL
) -> str:
    body = {"path": str(folder), "name": name or folder.name, "model": model}
    answer = httpx.post(f"{product.url}/ingest/start", json=body, timeout=PATIENCE)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["runId"])


def until(product: Product, run: str, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The status of a run as soon as it is so, or as it ended."""
    address = f"{product.url}/ingest/status/{run}"

    def there() -> dict[str, Any] | None:
        status: dict[str, Any] = httpx.get(address, timeout=PATIENCE).json()
        return status if reached(status) or ended(status) else None

    return wait_until(there, LONG)


def ended(status: dict[str, Any]) -> bool:
    return status["state"] in ("completed", "skipped", "error", "cancelled")


def until_ingested(product: Product, run: str) -> None:
    status = until(product, run, ended)
    assert status["state"] == "completed", status


def until_followed(product: Product) -> None:
    """Wait until Chroma has all that is published, by roots without equal files: an earlier answer
    of `/health` tells of fewer."""
    repos = httpx.get(f"{product.url}/tools/ingested-repos", timeout=PATIENCE).json()["repos"]
    vectors = sum(repo["counts"]["embedded"] for repo in repos)

    def complete() -> bool:
        health = httpx.get(f"{product.url}/health", timeout=PATIENCE).json()
        chroma = health["parts"]["chroma"]
        told = str(chroma["detail"]).endswith(f", {vectors:,} vectors")
        return told and chroma["word"] == "Complete"

    wait_until(complete, 2 * PATIENCE)


def ingest_into(
    product: Product, folder: Path, *, name: str = "", model: str = DEFAULT_MODEL
) -> None:
    until_ingested(product, start_ingest(product, folder, name=name, model=model))
