"""A disk that fills up: real ones, small, beneath a real server. Nothing waits for ever or is lost,
and everything says why."""

import errno
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import OperationalError
from django.test import Client

from apps.core.errors import Unavailable
from apps.core.system import disk
from apps.embedding.catalogue import DEFAULT_MODEL
from apps.index import endings, queries
from apps.index.models import IngestRun
from apps.index.texts.store import TextStore
from apps.index.types import TERMINAL_STATES
from apps.ingest import panels, services
from apps.ingest.runs import finish as finishing
from apps.ingest.runs import queue, recovery
from tests.browser.product import Product, running
from tests.stand_ins import openai_server
from tests.stand_ins.openai_server import EMBEDDING_MODEL, OpenAIStandIn
from tests.support import forks
from tests.support.ingested import outdate, run_ingest, write_files
from tests.support.parts import parts_on_disk
from tests.support.small_disk import fill, make_room, small_disk, use_up_files
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.door

FILES, LINES = 300, 200
# Far more questions than any end takes.
MOST_LOOKS = 20_000
CHAT = {"provider": "openai", "model": "plain"}
FULL_DATABASE = OperationalError("database or disk is full")


def write_repo(folder: Path) -> Path:
    """Enough for several batches."""
    body = "\n\n".join(f"def f{n}(a):\n    return a * {n}" for n in range(LINES))
    return write_files(folder, {f"m{n}.py": f"# {n}\n{body}\n" for n in range(FILES)})


def start(product: Product, repo: Path, model: str = EMBEDDING_MODEL) -> httpx.Response:
    body = {"path": str(repo), "name": repo.name, "model": model}
    return httpx.post(f"{product.url}/ingest/start", json=body, timeout=60)


def end_of(product: Product, run_id: str) -> dict[str, Any]:
    """The status of a run once it has ended."""
    with httpx.Client(base_url=product.url, timeout=60) as client:
        for _ in range(MOST_LOOKS):
            status: dict[str, Any] = client.get(f"/ingest/status/{run_id}").json()
            if status["state"] in TERMINAL_STATES:
                return status
    raise AssertionError(f"the run never ended: {status}")


def row_of(product: Product, run_id: str) -> tuple[str, str, str]:
    """State, reason and code as the database has them."""
    address = f"{(product.data / 'codeinfo.sqlite3').as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as database:
        found = database.execute(
            "SELECT state, last_error, error_code FROM index_ingestrun WHERE id = ?",
            [run_id.replace("-", "")],
        ).fetchone()
    return tuple(found)


def env_of(product: Product) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(product.data.parent),
        "CODEINFO_DATA_DIR": str(product.data),
        "CODEINFO_INGEST_BASE": str(product.repos),
        "CODEINFO_DISK_RESERVE_MB": "0",
        "MCP_FORCE_CODEX_AVAILABLE": "false",
        "PORT": product.url.rpartition(":")[2],
    }


def doctor(product: Product) -> dict[str, Any]:
    done = forks.manage("doctor", "--json", environ=env_of(product))
    assert done.stdout, done.stderr
    return {found["id"]: found for found in json.loads(done.stdout)["checks"]}


@pytest.fixture
def filling(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], None]], str]]:
    """filling(call): the address of an embedding and chat server at which `call` is called once, in
    the middle of an ingest."""
    reached: list[Callable[[], None]] = []
    answered = threading.Event()
    real = openai_server.embeddings
    count = iter(range(1_000_000))

    def embeddings(body: openai_server.JSON) -> openai_server.JSON:
        if next(count) == 35:
            reached[0]()
            answered.set()
        return real(body)

    monkeypatch.setattr(openai_server, "embeddings", embeddings)
    with OpenAIStandIn() as server:

        def address(call: Callable[[], None]) -> str:
            reached.append(call)
            return server.url

        yield address
    assert answered.is_set(), "the ingest never came so far"


@pytest.mark.fault("The disk is full")
@pytest.mark.door
def test_a_disk_that_fills_up_in_mid_run_ends_the_run_and_everything_says_why(
    folder: Path, filling: Callable[[Callable[[], None]], str]
) -> None:
    with small_disk(folder / "data", 160) as full:
        url = filling(lambda: fill(full))
        config = {"CODEINFO_OPENAI_BASE_URL": url, "CODEINFO_DISK_RESERVE_MB": "0"}
        with running(folder, **config) as product:
            repo = write_repo(product.repos / "repo")
            run_id = start(product, repo).json()["runId"]
            status = end_of(product, run_id)
            assert (status["state"], status["errorCode"]) == ("error", "DISK_FULL")
            assert str(full) in status["lastError"]

            # The database may have room for one more row, in its log that was folded.
            again = start(product, repo).json()
            code = again.get("code") or end_of(product, again["runId"])["errorCode"]
            assert code == "DISK_FULL"
            health = httpx.get(f"{product.url}/health", timeout=PATIENCE).json()
            assert health["parts"]["disk"]["state"] == "bad"
            assert "disk" in health["degraded"]
            assert doctor(product)["disk"]["level"] == "bad"
            page = httpx.get(f"{product.url}/ingest", timeout=60).text
            assert "Disk full." in page and str(full) in page
            assert "One run at a time." not in page
            connected = httpx.get(f"{product.url}/ui/site/connected", timeout=60).text
            assert "Disk space" in connected and str(full) in connected

            streamed = httpx.post(
                f"{product.url}/chat",
                json={"conversationId": "c1", "message": "Why?"} | CHAT,
                headers={"Accept": "text/event-stream"},
                timeout=60,
            )
            assert '"type": "complete"' in streamed.text, streamed.text

            make_room(full)
            second = start(product, repo)
            assert second.status_code == 202, second.text
            state, reason, code = row_of(product, run_id)
            assert (state, code) == ("error", "DISK_FULL")
            assert reason == status["lastError"]
            done = end_of(product, second.json()["runId"])
            assert done["state"] == "completed", (done, product.log())
            assert (
                "disk"
                not in httpx.get(f"{product.url}/health", timeout=PATIENCE).json()["degraded"]
            )


@pytest.mark.fault("The disk is full")
@pytest.mark.door
def test_a_disk_that_has_bytes_but_no_inodes_is_full(folder: Path) -> None:
    with OpenAIStandIn() as server, small_disk(folder / "data", 160, files=400) as full:
        config = {"CODEINFO_OPENAI_BASE_URL": server.url, "CODEINFO_DISK_RESERVE_MB": "0"}
        with running(folder, **config) as product:
            repo = write_files(product.repos / "repo", {"a.py": "a = 1\n"})
            assert end_of(product, start(product, repo).json()["runId"])["state"] == "completed"
            use_up_files(full)
            health = httpx.get(f"{product.url}/health", timeout=PATIENCE).json()
            found = health["parts"]["disk"]
            assert (found["state"], found["word"]) == ("bad", "Full")
            assert f"The disk of {full} has room for 0 more files" in found["detail"]
            assert doctor(product)["disk"]["detail"] == found["detail"]
            refused = start(product, repo).json()
            code = refused.get("code") or end_of(product, refused["runId"])["errorCode"]
            assert code == "DISK_FULL"
            done = forks.manage("backup", str(full / "a.tar.gz"), environ=env_of(product))
            assert f"{full} has too little space: while it is made, a backup needs" in done.stderr
            backup = forks.manage("backup", str(folder / "a.tar.gz"), environ=env_of(product))
            assert backup.returncode == 0, "another disk has room for it"


@pytest.mark.fault("The disk is full")
def test_a_run_ends_before_the_reserve_is_used_up_and_the_old_answers_stay(
    client: Client, folder: Path, configure: Callable[..., None], db: None, index: None
) -> None:
    repo = write_files(folder / "repo", {"a.py": "a = 1\n"})
    run = run_ingest(repo)
    assert run.state == "completed", run.last_error
    outdate(queries.find_root(str(repo)))
    free = disk.spaces()[0].free
    configure(disk_reserve_mb=free // 1_000_000 * 2)
    run = run_ingest(repo)
    assert (run.state, run.error_code, run.message) == ("error", "DISK_FULL", "Disk full")
    assert str(disk.spaces()[0].folder) in run.last_error
    assert f"{disk.spaces()[0].required:,} are required" in run.last_error
    assert queries.find_root(str(repo)).chunks == 1
    assert run_ingest(repo, dry_run=True).state == "completed"
    page = client.get("/ingest").content.decode()
    assert f"<strong>The disk of {disk.spaces()[0].folder} has" in page
    configure(disk_reserve_mb=0)
    assert "<strong>The disk of" not in client.get("/ingest").content.decode()


@pytest.mark.fault("The disk is full")
def test_room_is_looked_at_while_a_run_goes_on(
    repo: Path, index: None, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([None])
    monkeypatch.setattr(disk, "shortage", lambda: next(looks, disk.Space(Path("/data"), 5, 10)))
    run = run_ingest(repo)
    assert (run.state, run.error_code) == ("error", "DISK_FULL")
    assert run.last_error.startswith("The disk of /data has 5 bytes free; 10 are required")
    assert not parts_on_disk()


@pytest.mark.fault("The disk is full")
@pytest.mark.parametrize(
    "error",
    [
        Unavailable("Chroma failed: No space left on device (os error 28)"),
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        FULL_DATABASE,
    ],
    ids=["Chroma", "the system", "the database"],
)
def test_whichever_store_finds_it_full_the_reason_is_the_disk(
    repo: Path, index: None, db: None, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*args: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(TextStore, "add", fails)
    run = run_ingest(repo)
    assert (run.state, run.error_code) == ("error", "DISK_FULL")
    assert str(error) in run.last_error


@pytest.fixture
def unwritable(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Ends of runs cannot be written until it is called."""
    real, full = finishing.finish, [True]

    def finish(*args: Any) -> bool:
        if full:
            raise FULL_DATABASE
        return real(*args)

    monkeypatch.setattr(finishing, "finish", finish)
    yield full.clear
    endings.unsaved.clear()


@pytest.mark.fault("The disk is full")
def test_an_end_that_cannot_be_written_is_known_and_written_when_possible(
    repo: Path, index: None, db: None, unwritable: Callable[[], None]
) -> None:
    chosen = {"path": str(repo), "name": "lighthouse", "model": DEFAULT_MODEL}
    run = services.start_run(**chosen)
    queue.drain()
    assert IngestRun.objects.get(id=run.id).state == "embedding"
    assert queries.find_run(run.id).state == "completed"
    assert queries.active_run() is None
    shown = panels.context()
    assert shown["active"] is None and shown["panel"].run.state == "completed"
    assert services.cancel(run.id) == "complete"
    # A heart that stands still ends nothing that has ended.
    IngestRun.objects.update(heartbeat_at=run.queued_at - 2 * recovery.STALE)
    recovery.end_stale()
    with pytest.raises(OperationalError):
        services.start_run(**chosen)

    unwritable()
    second = services.start_run(**chosen)
    assert IngestRun.objects.get(id=run.id).state == "completed"
    assert queries.active_run() == second
