"""One process at a time uses a data folder, unless its settings let several share it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.browser.product import Product, running
from tests.site.commands import env_of, manage, manage_data
from tests.support import damage
from tests.support.ingested import write_files
from tests.support.locked import is_used
from tests.support.served import start_ingest, until
from tests.support.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.door


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("first")) as product:
        yield product


def refused(data: Path, *command: str, **environ: str) -> bool:
    """Whether a command says in one sentence that another process is there, and what to do."""
    done = manage(env_of(data, **environ), *command)
    sentence = f"Another process uses the data folder {data}: "
    lines = done.stderr.splitlines()
    return (
        done.returncode == 1
        and len(lines) == 1
        and sentence in lines[0]
        and "CODEINFO_DATA_DIR" in lines[0]
    )


@pytest.mark.fault("Two processes use one data folder")
def test_a_second_server_is_refused_and_no_chroma_is_made(product: Product) -> None:
    assert refused(product.data, "serve", CODEINFO_CHROMA="follow")
    assert not (product.data / "chroma").exists()


@pytest.mark.fault("Two processes use one data folder")
def test_beside_a_server_a_command_asks_it(product: Product) -> None:
    assert manage_data(product.data, "verify_index").returncode == 0


@pytest.mark.fault("Two processes use one data folder")
def test_a_lock_whose_file_was_removed_is_taken_again(product: Product) -> None:
    (product.data / "data.lock").unlink()
    wait_until(lambda: is_used(product.data))
    assert refused(product.data, "serve")


@pytest.mark.fault("Two processes use one data folder")
def test_of_a_killed_server_the_folder_is_free_and_its_run_is_interrupted(tmp_path: Path) -> None:
    with running(tmp_path) as product:
        run = start_ingest(product, write_files(product.repos / "ships", damage.many_files(3_000)))
        until(product, run, lambda status: status["state"] != "queued")
        os.kill(product.pid, signal.SIGKILL)
    with running(tmp_path) as product:
        status = httpx.get(f"{product.url}/ingest/status/{run}", timeout=PATIENCE).json()
    assert (status["state"], status["lastError"]) == ("error", "Interrupted")


@pytest.mark.fault("Two processes use one data folder")
def test_servers_whose_ingests_are_celerys_share_a_folder_with_no_other(tmp_path: Path) -> None:
    broker = {"CELERY_BROKER_URL": "memory://"}
    with running(tmp_path, **broker) as one:
        assert refused(one.data, "serve")
        beside = tmp_path / "beside"
        beside.mkdir()
        with running(beside, CODEINFO_DATA_DIR=str(one.data), **broker) as other:
            assert httpx.get(f"{other.url}/health", timeout=PATIENCE).status_code == 200
