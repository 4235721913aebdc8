"""What goes wrong around a run: races, a locked database, a full disk, a store or embedder away."""

import errno
import json
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import OperationalError, connection, connections
from django.test import Client

from apps.core.errors import CodeinfoError, Unavailable
from apps.embedding.static import MODEL_ID, StaticCodeEmbedder
from apps.index import queries
from apps.index.models import IndexLock, IngestRun, Root, SourceFile
from apps.index.texts import TextStore, get_texts
from apps.ingest import services
from apps.ingest.runs import queue, retry, sweep
from apps.ingest.runs.generation import Generation
from tests.ingest.stages import Nth, hook
from tests.support.index import first_is_zero
from tests.support.ingested import ingest, outdate, run_ingest, write_files
from tests.support.parts import chunk_ids, parts_on_disk, unlisted_parts

pytestmark = pytest.mark.door

MODEL = MODEL_ID


def all_at_once(count: int, call: Callable[[int], Any]) -> list[Any]:
    """What `call` answers in each of `count` threads that begin together."""
    gate = threading.Barrier(count)

    def run(index: int) -> Any:
        gate.wait(30)
        try:
            return call(index)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))


@pytest.mark.fault("Several runs start at once")
@pytest.mark.django_db(transaction=True)
def test_of_fifty_racing_starts_one_runs(repo: Path) -> None:
    def start(index: int) -> int:
        body = json.dumps({"path": str(repo), "name": "lighthouse", "model": MODEL})
        return Client().post("/ingest/start", body, content_type="application/json").status_code

    assert Counter(all_at_once(50, start)) == {202: 1, 429: 49}
    assert IngestRun.objects.count() == 1


@pytest.mark.fault("Several runs start at once")
@pytest.mark.django_db(transaction=True)
def test_of_starts_reembeds_and_removals_that_race_one_gets_in(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(repo)
    # A removal that gets in holds its place until all others have asked.
    barrier = threading.Barrier(12)
    monkeypatch.setattr(sweep, "drop_root", lambda root, **how: barrier.wait(30))
    verbs: list[Callable[[], Any]] = [
        lambda: services.start_run(path=str(repo), name="lighthouse", model=MODEL),
        lambda: services.reembed(str(repo)),
        lambda: services.remove(str(repo)),
    ]

    def attempt(index: int) -> str:
        try:
            verbs[index % 3]()
        except CodeinfoError as error:
            barrier.wait(30)
            return error.code
        if index % 3 != 2:
            barrier.wait(30)
        return "in"

    assert Counter(all_at_once(12, attempt)) == {"in": 1, "BUSY": 11}


@pytest.mark.fault("Several runs start at once")
@pytest.mark.django_db(transaction=True)
def test_racing_claims_never_get_the_same_run(repo: Path) -> None:
    services.start_run(path=str(repo), name="lighthouse", model=MODEL)
    claimed = [run for run in all_at_once(12, lambda index: queue.claim()) if run]
    assert len(claimed) == 1


@pytest.mark.django_db
def test_two_roots_cannot_have_one_name(folder: Path, repo: Path, index: None) -> None:
    """Both were free when they were asked for: the second to publish loses."""
    ingest(repo, "lighthouse")
    other = write_files(folder / "other", {"o.py": "o = 1\n"})
    run = services.start_run(path=str(other), name="other", model=MODEL)
    IngestRun.objects.filter(id=run.id).update(name="lighthouse")
    queue.drain()
    run.refresh_from_db()
    assert (run.state, run.last_error) == (
        "error",
        "Another folder is already called 'lighthouse'. Choose another name.",
    )
    assert [root.name for root in Root.objects.all()] == ["lighthouse"]
    assert not unlisted_parts()


@pytest.fixture
def locked_database() -> Iterator[None]:
    """Another program holds the write lock; we wait for it a moment only."""
    connection.ensure_connection()
    connection.cursor().execute("PRAGMA busy_timeout = 20")
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.execute("ROLLBACK")
    other.close()
    connection.close()


@pytest.mark.fault("The database is locked")
@pytest.mark.django_db(transaction=True)
def test_a_locked_database_is_503_with_retry_after(
    client: Client, repo: Path, locked_database: None
) -> None:
    body = json.dumps({"path": str(repo), "name": "lighthouse", "model": MODEL})
    answer = client.post("/ingest/start", body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (503, "DATABASE_UNAVAILABLE")
    assert int(answer["Retry-After"]) > 0
    assert client.get("/ingest/roots").status_code == 200


@pytest.mark.fault("The database is locked")
@pytest.mark.django_db
def test_a_run_waits_out_a_database_that_is_locked_for_a_while(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "PAUSE_SECONDS", 0)
    failures = {"rows": 2, "publish": 1}

    def sometimes(what: str) -> None:
        if failures[what]:
            failures[what] -= 1
            raise OperationalError("database is locked")

    real_insert = SourceFile.objects.insert
    monkeypatch.setattr(
        SourceFile.objects,
        "insert",
        lambda *a, **o: sometimes("rows") or real_insert(*a, **o),
    )
    real_advance = Generation.advance
    monkeypatch.setattr(Generation, "advance", lambda *a: sometimes("publish") or real_advance(*a))
    root = ingest(repo)
    assert failures["rows"] == failures["publish"] == 0
    assert len(chunk_ids(root)) == root.chunks


@pytest.mark.fault("The disk is full")
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("stage", "error", "reason"),
    [
        ("discovery", Unavailable("fatal: index file corrupt", code="GIT_FAILED"), "fatal: index"),
        ("embedding", Unavailable("The embedding server is away"), "server is away"),
        ("handing over", Unavailable("The texts cannot be written"), "texts cannot"),
        ("rows", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "No space left on device"),
        ("publishing", OSError(errno.EROFS, os.strerror(errno.EROFS)), "Read-only file system"),
        ("chunking", MemoryError("out of memory"), "out of memory"),
    ],
)
def test_a_run_that_fails_says_why_and_the_old_answers_stay(
    client: Client,
    repo: Path,
    index: None,
    contents: Callable[[Root], dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
    error: Exception,
    reason: str,
) -> None:
    root = ingest(repo)
    outdate(root)
    before = contents(root)

    def fail() -> None:
        raise error

    with monkeypatch.context() as patch:
        hook(stage, Nth(1, fail), patch.setattr)
        run = run_ingest(repo, "renamed")
    status = client.get(f"/ingest/status/{run.id}").json()
    full = "No space" in reason
    assert (status["state"], status["message"]) == ("error", "Disk full" if full else "Failed")
    assert (status.get("errorCode") == "DISK_FULL") is full
    assert reason in status["lastError"]
    assert status["counts"] == {"files": 0, "chunks": 0, "embedded": 0, "skipped": 0}
    assert contents(root) == before
    assert len(chunk_ids(root)) == len(before)
    (row,) = client.get("/ingest/roots").json()["roots"]
    assert (row["name"], row["status"]) == ("lighthouse", "error")
    assert reason in row["lastError"]
    assert ingest(repo, "renamed").generation == 2


@pytest.mark.django_db
def test_old_texts_that_cannot_be_deleted_do_not_undo_a_success(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(repo)
    sweep.sweep()  # other tests have left texts
    texts = len(get_texts().keys())
    write_files(repo, {"main.txt": "Changed.\n"})

    def away(*args: object) -> None:
        raise Unavailable("The texts are away")

    sweep.due.clear()
    with monkeypatch.context() as patch:
        patch.setattr(TextStore, "discard", away)
        ingest(repo)
    assert len(get_texts().keys()) == texts + 1
    assert sweep.due.is_set()
    sweep.sweep()
    assert len(get_texts().keys()) == texts


@pytest.mark.fault("Another embedding model")
@pytest.mark.django_db
def test_another_dimension_is_refused_with_the_lock(
    client: Client, repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)
    outdate(root)
    chunks = len(chunk_ids(root))
    monkeypatch.setattr(
        StaticCodeEmbedder, "embed_documents", lambda self, texts: np.ones((len(texts), 8), "f4")
    )
    run = run_ingest(repo)
    assert run.state == "error"
    assert "256 dimensions" in run.last_error
    assert len(chunk_ids(root)) == chunks
    assert IndexLock.objects.get().dimension == 256


@pytest.mark.django_db
def test_chunks_without_a_usable_vector_are_counted_out(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StaticCodeEmbedder, "embed_documents", first_is_zero)
    root = ingest(repo)
    assert root.embedded + 1 == root.chunks == len(chunk_ids(root))


@pytest.mark.django_db
def test_no_usable_vector_at_all_is_an_error(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        StaticCodeEmbedder,
        "embed_documents",
        lambda self, texts: np.full((len(texts), 256), np.nan, "f4"),
    )
    run = run_ingest(repo)
    assert (run.state, run.last_error) == ("error", f"{MODEL_ID} gave no usable vector")
    assert queries.locked_model() is None
    assert not parts_on_disk()
