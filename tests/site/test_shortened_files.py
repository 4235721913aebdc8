"""Files of the index that get shorter while a server reads them, as by a copy that breaks off."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.core.system import posix
from apps.index.mapped.files import MAPPED_BYTES
from tests.browser.product import Product, running
from tests.support import damage
from tests.support.ingested import write_files
from tests.support.served import ingest_into
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

PATIENCE = 60
FILES = 1_800  # so many chunks that their part is mapped
QUESTION = {"query": "a sail"}
PATTERN = {"pattern": r"return wind \* 17$"}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("shortened")
    with running(folder, CODEINFO_INGEST_REPAIR="ask") as product:
        ingest_into(product, write_files(product.repos / "ships", damage.many_files(FILES)))
        yield product


def ask(product: Product, path: str, body: Any = None) -> Any:
    method = "GET" if body is None else "POST"
    answer = httpx.request(method, f"{product.url}{path}", json=body, timeout=PATIENCE)
    return answer.json() | {"http": answer.status_code}


def shorten(product: Product, pattern: str, least: int) -> None:
    """Cut off all but the first page of the files."""
    paths = [path for path in product.data.glob(pattern) if path.stat().st_size > least]
    assert paths
    for path in paths:
        os.truncate(path, 4096)


@pytest.mark.fault("A file of the index gets shorter")
def test_grep_finds_all_after_its_n_grams_got_shorter(product: Product) -> None:
    before = ask(product, "/tools/grep", PATTERN)
    assert [each["relPath"] for each in before["results"]] == ["ship_17.py"]
    shorten(product, "grams/*.grams", 4096)
    slow = f"{FILES:,} files without n-grams were read one by one."
    assert ask(product, "/tools/grep", PATTERN) == before | {"slow": slow}


@pytest.mark.fault("A file of the index gets shorter")
def test_a_server_tells_of_a_part_that_gets_shorter(product: Product) -> None:
    assert ask(product, "/tools/vector-search", QUESTION)["results"]
    shorten(product, "index/*.part", MAPPED_BYTES)
    answer = ask(product, "/tools/vector-search", QUESTION)
    assert answer["degraded"] == "a part of the index is lost: ships"
    named = ask(product, "/tools/symbol-definitions", {"name": "sail_17"})
    assert named["degraded"] == answer["degraded"]
    wait_until(lambda: ask(product, "/health")["parts"]["index"]["word"] == "Damaged", PATIENCE)


@pytest.mark.kill
def test_the_log_has_the_stacks_of_a_server_that_crashed(tmp_path: Path) -> None:
    with running(tmp_path) as product:
        os.kill(product.pid, signal.SIGABRT)
        wait_until(lambda: not posix.is_running(product.pid))
    with running(tmp_path) as product:
        (entry,) = ask(product, "/logs?text=crashed")["items"]
        assert "Fatal Python error: Aborted" in entry["context"]["stack"]
        assert any("server.py" in line for line in entry["context"]["stack"])
