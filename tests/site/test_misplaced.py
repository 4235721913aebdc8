"""A folder in the place of a file of the data folder: what a start, /health, doctor, commands and
MCP clients say."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.browser.product import Product, running
from tests.site.commands import env_of, manage
from tests.support import forks
from tests.support.ingested import write_files
from tests.support.served import ingest_into
from tests.support.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.door


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("misplaced")) as product:
        ingest_into(product, write_files(product.repos / "ships", {"sail.py": "SAIL = 1\n"}))
        yield product


@pytest.fixture
def in_its_place(product: Product, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder, where the parameter names a file."""
    path = product.data / request.param
    kept = path.with_name("kept") if path.exists() else None
    if kept:
        path.rename(kept)
    path.mkdir()
    yield path
    path.rmdir()
    if kept:
        kept.rename(path)


def of_disk(product: Product, path: Path) -> dict[str, Any]:
    """What /health says of the disk once it says it of a path: an answer is kept for a moment."""

    def said() -> dict[str, Any] | None:
        answer = httpx.get(f"{product.url}/health", timeout=PATIENCE).json()
        part: dict[str, Any] = answer["parts"]["disk"]
        return part if str(path) in part["detail"] else None

    return wait_until(said)


def of_doctor(product: Product) -> dict[str, Any]:
    """The findings that are not well, by id."""
    port = product.url.rpartition(":")[2]
    done = manage(env_of(product.data, PORT=port), "doctor", "--json")
    checks = json.loads(done.stdout)["checks"]
    return {check["id"]: check for check in checks if check["level"] in ("bad", "warn")}


@pytest.mark.fault("A part of the installation is broken")
@pytest.mark.parametrize("in_its_place", ["server.lock", "server.json"], indirect=True)
def test_a_server_that_commands_do_not_find_is_told_as_that(
    product: Product, in_its_place: Path
) -> None:
    told = of_disk(product, in_its_place)
    assert told["word"] == "Misplaced"
    assert told["detail"] == f"{in_its_place} must be a file. Commands do not find this server."
    found = of_doctor(product)
    assert found["data"]["detail"].startswith(f"{in_its_place} must be a file: the server of ")
    assert found["disk"]["detail"] == told["detail"]
    assert "Another process" not in str(found)
    port = found[next(name for name in found if name.startswith("port:PORT"))]
    assert port["level"] == "warn" and str(in_its_place) in port["detail"]
    assert "stop what is there" not in str(found).lower()


@pytest.mark.fault("A part of the installation is broken")
@pytest.mark.parametrize("in_its_place", ["secret.key"], indirect=True)
def test_a_folder_in_the_place_of_the_secret_key(product: Product, in_its_place: Path) -> None:
    told = of_disk(product, in_its_place)
    assert told["detail"].endswith("No worker and no server can start: ingests stay queued.")
    assert "restore the file from a backup" in told["fix"]
    for verb in ("serve", "doctor"):
        done = manage(env_of(product.data), verb)
        assert done.returncode == 1
        assert f"{in_its_place} is a folder: move it away" in done.stderr
        assert "Errno" not in done.stderr


@pytest.mark.fault("A part of the installation is broken")
def test_a_start_beside_such_a_folder_says_so(tmp_path: Path) -> None:
    forks.copy_migrated(tmp_path / "data")
    lock = tmp_path / "data" / "server.lock"
    lock.mkdir()
    with running(tmp_path) as product:
        line = f"LOOK         {lock} must be a file: /health says what to do"
        wait_until(lambda: line in product.log())


@pytest.mark.fault("A part of the index is lost")
def test_an_unreadable_text_store_is_told_to_a_model_with_what_to_do(product: Product) -> None:
    texts = product.data / "texts"
    shutil.move(texts, product.data / "away")
    texts.write_bytes(b"no folder")
    call = {"name": "Grep", "arguments": {"pattern": "SAIL"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
    }
    try:
        answer = httpx.post(f"{product.url}/mcp", json=body, headers=headers, timeout=PATIENCE)
    finally:
        texts.unlink()
        shutil.move(product.data / "away", texts)
    (content,) = answer.json()["result"]["content"]
    assert content["text"] == (
        "TEXTS_UNAVAILABLE: The text store failed: Not a directory: "
        f"{texts / 'index.sqlite3'}. Call again in a moment; if it stays away, tell the user."
    )
