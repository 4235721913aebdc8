"""Chroma follows a real server, and is stopped, killed, deleted and away: nothing waits for it."""

import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.index.vectors import chroma
from tests.browser.product import STOP_SECONDS, Product, running
from tests.ports import free_ports
from tests.support.following import server_client
from tests.support.index import Server, server  # noqa: F401 - a fixture
from tests.support.ingested import write_files
from tests.support.served import ingest_into, until_followed
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

PATIENCE = 120
FILES = 20
FOLLOW = {"CODEINFO_CHROMA": "follow"}


def ingest(product: Product, name: str) -> None:
    """A repository with files of its own: folders with equal files share a collection."""
    files = {
        f"src/{name}{n}.py": f"def moor_{name}_{n}(ship):\n    return ship.moor()\n"
        for n in range(FILES)
    }
    ingest_into(product, write_files(product.repos / name, files))


def found(product: Product, name: str) -> set[str]:
    """The files that a search for what a repository alone has finds."""
    body = {"query": f"moor_{name}_7", "repository": name}
    answer = httpx.post(f"{product.url}/tools/vector-search", json=body, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    assert "degraded" not in answer.json()
    return {result["relPath"] for result in answer.json()["results"]}


def part(product: Product) -> dict[str, Any]:
    """What `/health` says of Chroma."""
    answer = httpx.get(f"{product.url}/health", timeout=PATIENCE)
    told: dict[str, Any] = answer.json()["parts"]["chroma"]
    return told


def processes(product: Product) -> list[int]:
    """The processes that have Chroma's folder."""
    lock = str(product.data / "chroma" / "chroma.lock")
    found = []
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(os.readlink(link) == lock for link in folder.iterdir()):
                found.append(int(folder.parent.name))
        except OSError:  # it has ended, or is another user's
            continue
    return found


def stop_chroma(product: Product) -> int:
    """Stop its process as soon as there is one. It has the folder for a second before it writes."""
    stopped: list[int] = []

    def stop() -> bool:
        for pid in processes(product):
            os.kill(pid, signal.SIGSTOP)
            stopped.append(pid)
        return bool(stopped)

    wait_until(stop, PATIENCE)
    return stopped[0]


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def has_ended(product: Product) -> bool:
    """Whether the server has; `running` takes note of it later."""
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, product.pid, flags) is not None


def collections(client: Any) -> Mapping[str, dict[str, Any]]:
    """Collection → id → metadata, as any client of Chroma reads them."""
    read = {}
    for each in client.list_collections():
        got = each.get(include=["metadatas"])
        read[each.name] = dict(zip(got["ids"], got["metadatas"], strict=True))
    return read


def in_folder(product: Product) -> Mapping[str, dict[str, Any]]:
    """Of an embedded Chroma whose server has ended."""
    with closing(chroma.open_embedded(product.data / "chroma")) as client:
        try:
            return collections(client)
        finally:
            client.clear_system_cache()


def test_health_and_the_ingest_page_tell_that_it_is_complete(tmp_path: Path) -> None:
    with running(tmp_path, **FOLLOW) as product:
        ingest(product, "lighthouse")
        until_followed(product)
        page = httpx.get(f"{product.url}/ingest", timeout=PATIENCE).text
        assert "<span>Searchable</span>" in page
        assert f'title="{FILES} of {FILES} vectors">Chroma</span>' in page
        # Nobody here searches it: its memory is free.
        wait_until(lambda: not processes(product))
        # Deleted while the server runs, it is written again after the next publication.
        shutil.rmtree(product.data / "chroma")
        ingest(product, "harbour")
        until_followed(product)
        assert part(product)["detail"] == f"Chroma embedded, {2 * FILES} vectors"
    assert [len(rows) for rows in in_folder(product).values()] == [FILES, FILES]


def test_a_stopped_chroma_delays_no_ingest_no_search_and_no_end(tmp_path: Path) -> None:
    with running(tmp_path, **FOLLOW) as product:
        ingest(product, "lighthouse")
        process = stop_chroma(product)
        ingest(product, "harbour")
        assert "src/harbour7.py" in found(product, "harbour")
        assert "src/lighthouse7.py" in found(product, "lighthouse")
        assert (part(product)["state"], part(product)["word"]) == ("ok", "0 %")
        assert processes(product) == [process]
        os.kill(product.pid, signal.SIGTERM)
        wait_until(lambda: has_ended(product), STOP_SECONDS)
        assert not is_there(process)


def test_of_a_killed_server_no_process_stays_and_the_next_one_follows_on(tmp_path: Path) -> None:
    with running(tmp_path, **FOLLOW) as product:
        ingest(product, "lighthouse")
        process = stop_chroma(product)
        os.kill(product.pid, signal.SIGKILL)
        os.kill(process, signal.SIGCONT)
        wait_until(lambda: not is_there(process), PATIENCE)
    with running(tmp_path, **FOLLOW) as product:
        until_followed(product)
    assert [len(rows) for rows in in_folder(product).values()] == [FILES]


def test_any_client_of_a_chroma_server_reads_ids_and_places(
    tmp_path: Path,
    server: Server,  # noqa: F811
) -> None:
    with running(tmp_path, CHROMA_URL=server.url, **FOLLOW) as product:
        ingest(product, "lighthouse")
        until_followed(product)
    with server_client(server.url) as client:
        ((name, rows),) = collections(client).items()
    assert name.startswith("ingest_vectors_")
    assert len(rows) == FILES
    assert all(key.rpartition(":")[2].isdigit() for key in rows)
    (moor,) = [facts for facts in rows.values() if facts["relPath"] == "src/lighthouse7.py"]
    assert len(moor.pop("fileHash")) == 64
    assert moor == {"relPath": "src/lighthouse7.py", "startLine": 1, "endLine": 2}


def test_a_chroma_server_that_is_away_is_told_and_not_missed(tmp_path: Path) -> None:
    with running(tmp_path, CHROMA_URL=f"127.0.0.1:{free_ports()}", **FOLLOW) as product:
        ingest(product, "lighthouse")
        wait_until(lambda: part(product)["word"] == "Failed", PATIENCE)
        told = part(product)
        assert told["state"] == "warn"
        assert "Search and ingest do not need it." in told["detail"]
        ingest(product, "harbour")
        assert "src/harbour7.py" in found(product, "harbour")
        assert httpx.get(f"{product.url}/health", timeout=PATIENCE).status_code == 200
