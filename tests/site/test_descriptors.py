"""The open files of a server and its worker, over many ingests of a folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.browser.product import Product, running
from tests.support.ingested import SAMPLE, write_files
from tests.support.served import ingest_into, until_ingested
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

ROUNDS = 4


def reingest(product: Product, folder: Path, number: int) -> None:
    """Change a file, ingest the folder again, and read it."""
    write_files(folder, {"src/beam.py": f"def rotate_beam(lamp):\n    return lamp + {number}\n"})
    answer = httpx.post(f"{product.url}/ingest/reembed/{folder}", json={}, timeout=60)
    assert answer.status_code == 202, answer.text
    until_ingested(product, answer.json()["runId"])
    for tool, body in (("vector-search", {"query": "beam"}), ("grep", {"pattern": "beam"})):
        found = httpx.post(f"{product.url}/tools/{tool}", json=body, timeout=60)
        assert "beam" in found.text


def opened(product: Product) -> dict[str, int]:
    """How many files the server and its worker have open."""
    return {
        kind: sum(1 for name in os.listdir(f"/proc/{pid}/fd") if is_file(pid, name))
        for kind, pid in processes(product.pid)
    }


def is_file(pid: int, name: str) -> bool:
    """Not a connection: a client keeps its own as long as it wants, and each thread one to the
    database. Nor a small file of texts or n-grams, of which there are more until the next sweep
    merges them."""
    try:
        path = os.readlink(f"/proc/{pid}/fd/{name}")
    except FileNotFoundError:
        return False
    return path.startswith("/") and not any(part in path for part in (".zst", ".grams", ".sqlite3"))


def processes(pid: int) -> Iterator[tuple[str, int]]:
    yield "server", pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            if b"django\0worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                yield "worker", int(child)


def test_ingests_again_leave_no_file_open(tmp_path: Path) -> None:
    with running(tmp_path) as product:
        folder = write_files(product.repos / "lighthouse", SAMPLE)
        ingest_into(product, folder)
        for number in range(ROUNDS):
            reingest(product, folder, number)
        before = opened(product)
        assert before.keys() == {"server", "worker"}
        for number in range(ROUNDS):
            reingest(product, folder, ROUNDS + number)

        def has_as_many() -> bool:
            now = opened(product)
            return now.keys() == before.keys() and all(now[kind] <= before[kind] for kind in now)

        # What is read at this moment is open.
        wait_until(has_as_many)
