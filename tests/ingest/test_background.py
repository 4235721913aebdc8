"""Ingests of many files: embedding in a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.core.concurrency.background import NICE, Background, ProcessLost
from apps.core.errors import InvalidInput
from apps.embedding.background import BackgroundEmbedder
from apps.embedding.static import StaticCodeEmbedder
from apps.embedding.types import EmbeddingText
from apps.index.models import Root
from apps.ingest import services
from apps.ingest.runs import pipeline, queue
from apps.lookup.texts.patterns import Pattern
from tests.ingest.stages import Nth, hook
from tests.support.ingested import ingest, run_ingest, write_files
from tests.support.parts import chunk_ids, parts_on_disk

pytestmark = pytest.mark.door


@pytest.fixture
def background() -> Iterator[Background]:
    process = Background()
    yield process
    process.close()


@pytest.fixture
def many(folder: Path) -> Path:
    files = {f"src/f{n}.py": f"def retry{n}(times):\n    return times + {n}\n" for n in range(30)}
    return write_files(folder / "many", files)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run counts as large, and writes in several batches."""
    monkeypatch.setattr(pipeline, "LARGE_RUN", 1)
    monkeypatch.setattr("apps.ingest.runs.batches.ROWS_PER_WRITE", 5)
    monkeypatch.setattr("apps.ingest.runs.batches.READ_AT_ONCE", 5)
    monkeypatch.setenv("INGEST_FLUSH_EVERY", "1")


def test_a_process_returns_results_and_errors_until_it_is_closed(background: Background) -> None:
    assert background.call(os.getppid) == os.getpid()
    first = background.call(os.getpid)
    with pytest.raises(InvalidInput):
        background.call(Pattern.compiled, Pattern("("))
    assert background.call(os.getpid) == first
    assert background.call(os.nice, 0) >= 10
    background.close()
    with pytest.raises(ProcessLost):
        background.call(os.getpid)


def test_a_process_that_is_killed_raises_and_is_not_started_again(background: Background) -> None:
    with pytest.raises(ProcessLost):
        background.call(os.kill, background.call(os.getpid), signal.SIGKILL)
    with pytest.raises(ProcessLost):
        background.call(os.getpid)


def test_a_process_gets_no_secrets(background: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEINFO_API_TOKEN", "secret")
    assert background.call(os.getenv, "CODEINFO_API_TOKEN") is None


def test_a_lost_embedder_continues_with_equal_vectors() -> None:
    texts = [EmbeddingText(f"def retry_{n}(): return {n}", path="a/b.py") for n in range(20)]
    plain = StaticCodeEmbedder()
    embedder = BackgroundEmbedder(plain)
    try:
        there = embedder.embed_documents(texts)
        embedder.close()
        here = embedder.embed_documents(texts)
    finally:
        embedder.close()
    assert (there == here).all()
    assert (there == plain.embed_documents(texts)).all()


@pytest.mark.django_db
def test_a_large_run_has_the_same_index_as_a_small_one(
    many: Path,
    index: None,
    contents: Callable[[Root], dict[str, str]],
    request: pytest.FixtureRequest,
) -> None:
    idle = children()
    small = ingest(many)
    before = contents(small)
    assert len(before) == 30
    services.remove(str(many))
    request.getfixturevalue("large")
    root = ingest(many)
    assert contents(root) == before
    assert children() == idle


@pytest.mark.django_db
@pytest.mark.parametrize("call", [1, 3])
def test_a_run_goes_on_when_its_processes_are_killed(
    many: Path, index: None, large: None, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    kill = Nth(call, lambda: [os.kill(each, signal.SIGKILL) for each in processes()] and None)
    with monkeypatch.context() as patch:
        hook("handing over", kill, patch.setattr)
        root = ingest(many)
    assert kill.happened
    assert len(chunk_ids(root)) == root.chunks == 30


@pytest.mark.django_db
def test_a_cancel_ends_the_processes(
    many: Path, index: None, large: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    embed = BackgroundEmbedder.embed_documents

    def cancelled(embedder: BackgroundEmbedder, texts: Any) -> Any:
        vectors = embed(embedder, texts)
        seen.append(children())
        (job,) = queue.jobs.values()
        job.cancel()
        return vectors

    monkeypatch.setattr(BackgroundEmbedder, "embed_documents", cancelled)
    assert run_ingest(many).state == "cancelled"
    assert seen[0] > 0
    assert children() == 0
    assert not parts_on_disk()


def processes() -> list[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-f", "apps.core.concurrency.background"],
        capture_output=True,
        text=True,
        check=False,
    )
    return [int(each) for each in found.stdout.split()]


def children() -> int:
    return len(processes())


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority elsewhere")
def test_the_worker_has_a_lower_priority_than_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    of_server, of_worker = os.nice(0), list[int]()
    worker = queue.Worker()

    def claim() -> None:
        of_worker.append(os.nice(0))
        worker.end()

    monkeypatch.setattr(queue, "claim", claim)
    monkeypatch.setattr(queue.finish, "save", lambda: None)
    monkeypatch.setattr(queue.recovery, "end_stale", lambda: None)
    for step in ("_sweep", "_check"):
        monkeypatch.setattr(worker, step, lambda: False)
    worker.start()
    worker.join(10)
    assert of_worker == [max(NICE, of_server)]
    assert os.nice(0) == of_server
