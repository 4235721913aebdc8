"""`manage.py verify_index` with a running server, without one, and where another is in the way."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.index.vectors.chroma import FolderLock
from tests.browser.product import Product, running
from tests.house.sources import HOME
from tests.support.ingested import SAMPLE, write_files

pytestmark = pytest.mark.door

MODEL = "static-code-256-v2"


def manage(data: Path, *args: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """One command of manage.py on a data folder."""
    env = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": str(data), "HOME": str(data.parent)}
    return subprocess.run(
        [sys.executable, "manage.py", *args],
        cwd=HOME,
        env=env | {"CODEINFO_INGEST_BASE": str(data.parent)} | more,
        capture_output=True,
        text=True,
        check=False,
    )


def start_ingest(product: Product, folder: Path, model: str = MODEL) -> str:
    body = {"path": str(folder), "name": folder.name, "model": model}
    answer = httpx.post(f"{product.url}/ingest/start", json=body, timeout=60)
    assert answer.is_success, answer.text
    return str(answer.json()["runId"])


def until(product: Product, run: str, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The status of a run as soon as it is so."""
    while True:
        status: dict[str, Any] = httpx.get(f"{product.url}/ingest/status/{run}", timeout=60).json()
        if reached(status) or ended(status):
            return status


def ended(status: dict[str, Any]) -> bool:
    return status["state"] in ("completed", "skipped", "error", "cancelled")


def ingest_into(product: Product, folder: Path, model: str = MODEL) -> None:
    status = until(product, start_ingest(product, folder, model), ended)
    assert status["state"] == "completed", status


def test_the_running_server_verifies_and_repairs_or_else_the_command(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as product:
        repo = write_files(product.repos / "lighthouse", SAMPLE)
        ingest_into(product, repo)
        done = manage(product.data, "verify_index", "--source")
        assert done.returncode == 0, done.stderr
        assert "0 differences in 1 root." in done.stdout and str(repo) in done.stdout
        write_files(repo, {"src/new.py": "def fresh() -> int:\n    return 1\n"})
        done = manage(product.data, "verify_index", "--source", "--json", "lighthouse")
        assert done.returncode == 1
        (root,) = json.loads(done.stdout)["roots"]
        assert [each["kind"] for each in root["differences"]] == ["file_new"]
        done = manage(product.data, "verify_index", "--source", "--repair")
        assert done.returncode == 0, done.stderr
        assert "1 repaired" in done.stdout
        done = manage(product.data, "verify_index", "nowhere")
        assert done.returncode == 1 and "No ingested folder nowhere" in done.stderr
        assert "Traceback" not in done.stderr
    shutil.rmtree(product.data / "lexical")
    done = manage(product.data, "verify_index")
    assert done.returncode == 1 and "words_missing" in done.stdout
    done = manage(product.data, "verify_index", "--repair", "--source")
    assert done.returncode == 0, done.stderr


def test_stores_that_another_process_has_are_named(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert manage(data, "migrate").returncode == 0
    lock = FolderLock(data / "chroma")
    try:
        done = manage(data, "verify_index")
    finally:
        lock.close()
    assert done.returncode == 1
    assert "is not a server that answers" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_without_a_database_is_reported(tmp_path: Path) -> None:
    done = manage(tmp_path / "data", "verify_index")
    assert done.returncode == 1
    assert "The database does not answer" in done.stderr and "Traceback" not in done.stderr
