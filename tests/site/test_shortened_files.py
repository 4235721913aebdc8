"""Files of the index that get shorter while a server reads them, as by a copy that breaks off, and
processes that crash."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.core.system import posix
from apps.index.mapped.files import MAPPED_BYTES
from tests.browser.product import HOME, Product, running
from tests.site.commands import env_of, manage
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


@pytest.mark.fault("A parser is killed or takes too long")
def test_the_log_has_the_stack_of_a_parser_that_crashed(product: Product) -> None:
    """It waits for work when it crashes: the next request finds out, and starts another one."""
    named = {"name": "sail_17"}
    before = ask(product, "/tools/symbol-references", named)
    parsers = ["pgrep", "-P", str(product.pid), "-f", "apps.code.syntax"]
    for pid in subprocess.run(parsers, capture_output=True, text=True, check=True).stdout.split():
        os.kill(int(pid), signal.SIGSEGV)
    assert ask(product, "/tools/symbol-references", named) == before
    entry = ask(product, "/logs?text=parse process crashed")["items"][0]
    assert entry["context"]["path"] == "ship_17.py"
    assert "Fatal Python error: Segmentation fault" in entry["context"]["stack"]
    assert any("in serve" in line for line in entry["context"]["stack"])


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
def test_a_command_that_crashes_prints_its_stack(tmp_path: Path) -> None:
    done = manage(env_of(tmp_path), "shell", "--command=import os; os.abort()")
    assert done.returncode == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in done.stderr


@pytest.mark.kill
def test_a_worker_of_celery_that_crashes_prints_its_stack(tmp_path: Path) -> None:
    env = env_of(tmp_path, CELERY_BROKER_URL="memory://")
    command = [sys.executable, "-c", "import codeinfo.celery, os; os.abort()"]
    done = subprocess.run(command, cwd=HOME, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in done.stderr


@pytest.mark.kill
def test_the_log_has_the_stacks_of_a_server_that_crashed(tmp_path: Path) -> None:
    with running(tmp_path) as product:
        os.kill(product.pid, signal.SIGABRT)
        wait_until(lambda: not posix.is_running(product.pid))
    with running(tmp_path) as product:
        (entry,) = ask(product, "/logs?text=crashed")["items"]
        assert "Fatal Python error: Aborted" in entry["context"]["stack"]
        assert any("server.py" in line for line in entry["context"]["stack"])
