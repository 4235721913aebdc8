"""Cancelling at every stage: nothing of the run is left, and what stood before stands."""

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.core.config import config
from apps.core.errors import Conflict
from apps.embedding.static import MODEL_ID
from apps.index import queries
from apps.index.models import IndexLock, IngestRun, Root, SourceFile
from apps.index.vectors.store import get_store
from apps.ingest import services
from apps.ingest.discovery.discovery import Classifier
from apps.ingest.discovery.walk import ListedFile
from apps.ingest.runs import queue, sweep
from tests.ingest.stages import STAGES, Nth, hook
from tests.support.ingested import files_of, ingest, ingest_alone, outdate, run_ingest, write_files
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

# Here the run and its test share one thread and one transaction.
IN_THREAD = tuple(stage for stage in STAGES if stage != "storing")
BEFORE_PUBLISHING = IN_THREAD[: IN_THREAD.index("publishing")]
# Before the first stage of that name, and after it; "publishing" can be cancelled only before.
MOMENTS = [(stage, call) for stage in BEFORE_PUBLISHING for call in (1, 2)] + [("publishing", 1)]


def cancel_now() -> None:
    """Cancel from inside the run's own thread: it cannot be waited for, so it is pending."""
    run = queries.active_run()
    assert run is not None
    assert services.cancel(run.id, timeout=0) == "pending"


@pytest.fixture
def cancel_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], Nth]:
    def arrange(stage: str, call: int) -> Nth:
        moment = Nth(call, cancel_now)
        hook(stage, moment, monkeypatch.setattr)
        return moment

    return arrange


@pytest.mark.django_db
@pytest.mark.parametrize(("stage", "call"), MOMENTS)
def test_a_first_ingest_leaves_nothing(
    repo: Path, store: Any, cancel_at: Callable[[str, int], Nth], stage: str, call: int
) -> None:
    moment = cancel_at(stage, call)
    # Other tests of this worker may have left files of theirs.
    before = get_store().collections(), set(index_folders())
    run = run_ingest(repo)
    assert moment.happened
    assert (run.state, run.message) == ("cancelled", "Cancelled")
    assert not Root.objects.exists()
    assert not SourceFile.objects.exists()
    assert not IndexLock.objects.exists()
    assert get_store().collections() <= before[0]
    assert set(index_folders()) <= before[1]


@pytest.mark.django_db
@pytest.mark.parametrize(("stage", "call"), MOMENTS)
def test_a_reembed_keeps_the_old_answers_and_a_later_one_equals_a_clean_ingest(
    folder: Path,
    repo: Path,
    store: Any,
    contents: Callable[[Root], dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
    call: int,
) -> None:
    root = ingest(repo)
    before = contents(root)
    write_files(repo, {"src/retry.py": "def changed() -> None:\n    pass\n", "new.md": "# New\n"})
    moment = Nth(call, cancel_now)
    with monkeypatch.context() as patch:
        hook(stage, moment, patch.setattr)
        run = run_ingest(repo, "renamed")
    assert moment.happened
    assert run.state == "cancelled"
    root.refresh_from_db()
    assert (root.generation, root.name, root.last_state) == (1, "lighthouse", "cancelled")
    assert contents(root) == before
    assert store.count(root.id) == len(before)
    assert {file.run_id for file in SourceFile.objects.all()} == {root.last_run_id}
    next_run = ingest(repo)
    clean = ingest_alone(write_files(folder / "copy", files_of(repo)), "copy")
    assert contents(next_run) == contents(clean) != before
    assert store.count(next_run.id) == store.count(clean.id)


@pytest.mark.django_db
@pytest.mark.parametrize(("stage", "call"), [("publishing", 2), ("deleting the old", 1)])
def test_a_cancel_after_publishing_changes_nothing(
    repo: Path, store: Any, cancel_at: Callable[[str, int], Nth], stage: str, call: int
) -> None:
    moment = cancel_at(stage, call)
    run = run_ingest(repo)
    assert moment.happened
    assert run.state == "completed"
    root = queries.find_root(str(repo))
    assert store.count(root.id) == root.chunks > 0


@pytest.mark.fault("A run is cancelled")
@pytest.mark.django_db
def test_a_folder_is_not_looked_through_to_its_end(
    repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    classified: list[ListedFile] = []
    classify = Classifier.classify

    def cancelled_at_the_first(classifier: Classifier, listed: ListedFile) -> Any:
        if not classified:
            cancel_now()
        classified.append(listed)
        return classify(classifier, listed)

    monkeypatch.setattr(Classifier, "classify", cancelled_at_the_first)
    assert run_ingest(repo).state == "cancelled"
    assert len(classified) == 1


@pytest.mark.fault("A run is cancelled")
@pytest.mark.django_db
def test_what_a_large_first_ingest_wrote_is_left_to_the_sweep(
    repo: Path, store: Any, cancel_at: Callable[[str, int], Nth], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "MAX_DELETED_NOW", 0)
    before = get_store().collections()
    cancel_at("publishing", 1)
    assert run_ingest(repo).state == "cancelled"
    assert not Root.objects.exists()
    assert sweep.due.is_set()
    (left,) = get_store().collections() - before
    assert store.count(left) > 0
    sweep.sweep()
    assert left not in get_store().collections()
    assert not sweep.due.is_set()


@pytest.mark.fault("A run is cancelled")
@pytest.mark.django_db
def test_what_a_large_reembed_wrote_answers_nothing_and_is_left_to_the_sweep(
    repo: Path,
    store: Any,
    contents: Callable[[Root], dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = ingest(repo)
    before = contents(root)
    outdate(root)
    monkeypatch.setattr(sweep, "MAX_DELETED_NOW", 0)
    with monkeypatch.context() as patch:
        hook("publishing", Nth(1, cancel_now), patch.setattr)
        assert run_ingest(repo).state == "cancelled"
    assert contents(root) == before
    assert store.count(root.id) == 2 * len(before)
    sweep.sweep()
    assert store.count(root.id) == len(before)
    assert contents(root) == before


@pytest.mark.django_db
def test_the_old_is_left_to_the_sweep_where_a_run_is_to_end(
    repo: Path, store: Any, cancel_at: Callable[[str, int], Nth]
) -> None:
    root = ingest(repo)
    outdate(root)
    cancel_at("deleting the old", 1)
    assert run_ingest(repo).state == "completed"
    assert store.count(root.id) == 2 * root.chunks
    assert sweep.due.is_set()
    sweep.sweep()
    assert store.count(root.id) == root.chunks


@pytest.mark.django_db
def test_a_queued_run_interrupts_a_sweep(
    repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)
    monkeypatch.setattr(sweep, "MAX_DELETED_NOW", 0)
    monkeypatch.setattr("apps.index.vectors.store.MAX_DROPPED", 0)
    root_id = root.id
    assert sweep.drop_root(root) is False
    worker = queue.Worker()
    worker.wake()
    worker._sweep()
    assert sweep.due.is_set()
    assert store.count(root_id) == root.chunks
    sweep.sweep()
    assert root_id not in get_store().collections()


@pytest.mark.django_db
@pytest.mark.parametrize(("stage", "call"), [("chunking", 1), ("chunking", 2)])
def test_a_dry_run_can_be_cancelled(
    repo: Path, store: Any, cancel_at: Callable[[str, int], Nth], stage: str, call: int
) -> None:
    cancel_at(stage, call)
    assert run_ingest(repo, dry_run=True).state == "cancelled"


@pytest.mark.django_db
def test_a_queued_run_is_cancelled_at_once(client: Client, repo: Path, store: Any) -> None:
    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    answer = client.post(f"/ingest/cancel/{run.id}", "", content_type="application/json")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "cleanup": "complete"})
    assert queue.drain() == []
    assert client.get(f"/ingest/status/{run.id}").json()["state"] == "cancelled"
    # It no longer stands in anyone's way.
    assert run_ingest(repo).state == "completed"


@pytest.mark.django_db
def test_cancelling_an_ended_run_changes_nothing(
    client: Client, folder: Path, repo: Path, store: Any
) -> None:
    done = run_ingest(repo)
    failed = run_ingest(write_files(folder / "empty", {"a.png": b"\0"}), "empty")
    skipped = run_ingest(write_files(folder / "blank", {"a.py": "\n"}), "blank")
    for run, state in ((done, "completed"), (failed, "error"), (skipped, "skipped")):
        answer = client.post(f"/ingest/cancel/{run.id}", "", content_type="application/json")
        assert answer.json() == {"status": "ok", "cleanup": "complete"}
        run.refresh_from_db()
        assert run.state == state
    root = queries.find_root(str(repo))
    assert store.count(root.id) == root.chunks


@pytest.mark.django_db
@pytest.mark.parametrize("stage", IN_THREAD)
def test_nothing_is_removed_while_a_run_is_active(
    repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    outdate(ingest(repo))
    refused: list[str] = []

    def try_to_remove() -> None:
        with pytest.raises(Conflict) as caught:
            services.remove(str(repo))
        refused.append(caught.value.code)

    with monkeypatch.context() as patch:
        hook(stage, Nth(1, try_to_remove), patch.setattr)
        root = ingest(repo)
    assert refused == ["BUSY"]
    assert services.remove(str(repo)) is True
    assert store.count(root.id) == 0
    assert not get_store().collections()
    assert not index_folders()


@pytest.fixture
def worker() -> Iterator[None]:
    """The worker thread, as `serve` runs it."""
    queue.start_worker()
    yield
    queue.stop_worker()


@pytest.mark.django_db(transaction=True)
def test_cancel_returns_when_the_worker_has_stopped(
    client: Client, repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch, worker: None
) -> None:
    reached, never_cancelled = threading.Event(), threading.Event()

    def wait() -> None:
        reached.set()
        assert never_cancelled.wait(20)

    hook("storing", Nth(1, wait), monkeypatch.setattr)
    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    assert reached.wait(20)
    assert client.get(f"/ingest/status/{run.id}").json()["state"] == "embedding"
    assert services.cancel(run.id, timeout=0) == "pending"
    monkeypatch.setattr(queue, "CANCEL_SECONDS", 20)
    never_cancelled.set()
    answer = client.post(f"/ingest/cancel/{run.id}", "", content_type="application/json")
    assert answer.json() == {"status": "ok", "cleanup": "complete"}
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert not get_store().collections()
    assert client.get("/ingest/roots").json() == {"roots": [], "lockedModelId": None}


@pytest.mark.django_db(transaction=True)
def test_cancel_answers_while_the_store_is_busy_and_the_run_ends_afterwards(
    client: Client, repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch, worker: None
) -> None:
    assert queue.CANCEL_SECONDS < 1
    reached, store_is_free = threading.Event(), threading.Event()

    def wait() -> None:
        reached.set()
        assert store_is_free.wait(60)

    hook("storing", Nth(1, wait), monkeypatch.setattr)
    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    assert reached.wait(20)
    # The store is not free before the cancel has answered.
    answer = client.post(f"/ingest/cancel/{run.id}", "", content_type="application/json")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "cleanup": "pending"})
    status = client.get(f"/ingest/status/{run.id}").json()
    assert (status["state"], status["message"]) == ("embedding", "Cancelling")
    panels = client.get("/ui/ingest/parts").content.decode()
    assert 'data-speak="lighthouse: Cancelling"' in panels
    assert "Cancelling lighthouse" in re.sub(r"<[^>]*>| (?= )", "", panels)
    assert re.search(r'id="cancel-run" disabled', panels)
    store_is_free.set()
    assert queue.stop_run(run.id, 20)
    status = client.get(f"/ingest/status/{run.id}").json()
    assert (status["state"], status["message"]) == ("cancelled", "Cancelled")
    assert not get_store().collections()


@pytest.mark.django_db
def test_a_removal_asks_no_store_and_the_sweep_deletes_the_vectors(
    client: Client, repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store may be busy for long. Nothing else deletes while this process has a worker."""
    root = ingest(repo)

    def busy(*args: object) -> None:
        raise AssertionError("the store is asked")

    with monkeypatch.context() as patch:
        patch.setattr(queue, "worker_state", lambda: "idle")
        for verb in ("drop", "delete", "origin", "count"):
            patch.setattr(type(store), verb, busy)
        path = f"/ingest/remove/{root.path}"
        answer = client.post(path, "", content_type="application/json")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "unlocked": True})
    assert client.get("/ingest/roots").json() == {"roots": [], "lockedModelId": None}
    assert sweep.due.is_set()
    assert store.count(root.id) == root.chunks
    sweep.sweep()
    assert not get_store().collections()


@pytest.mark.fault("A run is cancelled")
@pytest.mark.django_db(transaction=True)
def test_cancel_does_not_wait_for_what_is_left_to_the_sweep(
    client: Client, repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "MAX_DELETED_NOW", 0)
    reached = threading.Event()

    def wait() -> None:
        reached.set()
        (job,) = queue.jobs.values()
        wait_until(lambda: job.cancelled)

    hook("publishing", Nth(1, wait), monkeypatch.setattr)
    queue.start_worker()
    try:
        run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
        assert reached.wait(30)
        answer = client.post(f"/ingest/cancel/{run.id}", "", content_type="application/json")
        queue.stop_run(run.id, 30)
    finally:
        queue.stop_worker()
    assert answer.json() == {"status": "ok", "cleanup": "pending"}
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert client.get("/ingest/roots").json()["roots"] == []
    sweep.sweep()
    assert not get_store().collections()


@pytest.mark.django_db(transaction=True)
def test_a_flag_set_by_another_process_is_seen(
    repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch, worker: None
) -> None:
    reached = threading.Event()

    def chunk_for_ever() -> None:
        reached.set()
        # Only the heartbeat can see the flag: the pipeline writes nothing meanwhile.
        (job,) = queue.jobs.values()
        wait_until(lambda: job.cancelled)

    monkeypatch.setattr("apps.ingest.runs.heartbeat.BEAT_SECONDS", 0.01)
    hook("chunking", Nth(1, chunk_for_ever), monkeypatch.setattr)
    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    assert reached.wait(20)
    IngestRun.objects.filter(id=run.id).update(cancel_requested=True)
    queue.stop_run(run.id, 20)
    run.refresh_from_db()
    assert run.state == "cancelled"


@pytest.mark.django_db(transaction=True)
def test_stopping_the_server_interrupts_the_run_and_keeps_the_queue(
    folder: Path, repo: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ingest(repo)
    second = ingest(write_files(folder / "other", {"o.py": "o = 1\n"}), "other")
    outdate(first)
    outdate(second)
    reached, never_cancelled = threading.Event(), threading.Event()

    def wait() -> None:
        reached.set()
        assert never_cancelled.wait(20)

    hook("embedding", Nth(1, wait), monkeypatch.setattr)
    active, waiting = services.queue_reembeds([first.id, second.id])
    queue.start_worker()
    assert reached.wait(20)
    threading.Timer(0.05, never_cancelled.set).start()
    queue.stop_worker()
    active.refresh_from_db()
    waiting.refresh_from_db()
    assert (active.state, active.last_error) == ("error", "Interrupted")
    assert waiting.state == "queued"
    assert store.count(first.id) == first.chunks
    assert queue.drain() != []
    waiting.refresh_from_db()
    assert waiting.state == "completed"


def index_folders() -> list[Path]:
    """What Chroma keeps on disk for collections: a folder each."""
    return [entry for entry in (config().data_dir / "chroma").iterdir() if entry.is_dir()]
