"""A search process that stands still, at a real server."""

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.browser.product import Product, running
from tests.support import damage
from tests.support.ingested import write_files
from tests.support.served import ingest_into
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.door, pytest.mark.kill]

# Three times as long as the server waits for a process.
PATIENCE = 30
QUERY = {"query": "sail_17"}


def processes(server: int) -> list[int]:
    command = ["pgrep", "-P", str(server), "-f", "concurrency.background search"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [int(pid) for pid in done.stdout.split()]


def waits(process: int, seen: list[str]) -> bool:
    """Whether a process has done nothing but wait since this was asked the last time but one: it
    has started."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    seen.append(f"{fields[0]} {fields[11:13]}")  # its state, and processor time
    return fields[0] == "S" and seen[-3:] == [seen[-1]] * 3


def searches(product: Product, count: int) -> list[Any]:
    """The results of searches at once."""

    def search(_: int) -> Any:
        address = f"{product.url}/tools/vector-search"
        return httpx.post(address, json=QUERY, timeout=PATIENCE).json()["results"]

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(search, range(count)))


@pytest.mark.fault("A search process is lost")
def test_its_searches_are_answered_and_health_and_log_tell(tmp_path: Path) -> None:
    with running(tmp_path, CODEINFO_SEARCH_PROCESSES="1") as product:
        ingest_into(product, write_files(product.repos / "ships", damage.many_files(20)))
        wait_until(lambda: bool(searches(product, 4) and processes(product.pid)))
        expected = searches(product, 1) * 12
        (process,) = processes(product.pid)
        wait_until(partial(waits, process, []))
        os.kill(process, signal.SIGSTOP)
        assert searches(product, 12) == expected
        health = httpx.get(f"{product.url}/health", timeout=PATIENCE).json()
        assert health["parts"]["searches"]["word"] == "Process lost"
        assert "searches" in health["degraded"]
        log = httpx.get(f"{product.url}/logs?text=search process lost", timeout=PATIENCE).json()
        assert "did not answer within 5 s" in log["items"][0]["context"]["reason"]
