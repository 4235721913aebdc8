"""Cancelling at every stage: nothing of the run is left, and what stood before stands."""

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.core.errors import Conflict
from apps.embedding.static import MODEL_ID
from apps.index import queries
from apps.index.models import IndexLock, IngestRun, Root, SourceFile
from apps.ingest import services
from apps.ingest.discovery.discovery import Classifier
from apps.ingest.runs import queue, submit, sweep
from apps.ingest.types import ListedFile
from apps.ingest.worker.loop import Worker
from apps.ingest.worker.supervisor import supervisor
from tests.ingest.stages import STAGES, Nth, hook
from tests.support.ingested import files_of, ingest, ingest_alone, outdate, run_ingest, write_files
from tests.support.parts import chunk_ids, parts_on_disk, unlisted_parts
from tests.support.waiting import PATIENCE, wait_until
from tests.support.working import working

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
    repo: Path, index: None, cancel_at: Callable[[str, int], Nth], stage: str, call: int
) -> None:
    moment = cancel_at(stage, call)
    run = run_ingest(repo)
    assert moment.happened
    assert (run.state, run.message) == ("cancelled", "Cancelled")
    assert not Root.objects.exists()
    assert not SourceFile.objects.exists()
    assert not IndexLock.objects.exists()
    assert not parts_on_disk()


@pytest.mark.django_db
@pytest.mark.parametrize(("stage", "call"), MOMENTS)
def test_a_reembed_keeps_the_old_answers_and_a_later_one_equals_a_clean_ingest(
    folder: Path,
    repo: Path,
    index: None,
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
    assert len(chunk_ids(root)) == len(before)
    assert not unlisted_parts()
    assert {file.run_id for file in SourceFile.objects.all()} == {root.last_run_id}
    next_run = ingest(repo)
    clean = ingest_alone(write_files(folder / "copy", files_of(repo)), "copy")
    assert contents(next_run) == contents(clean) != before
    assert len(chunk_ids(next_run)) == len(chunk_ids(clean))


@pytest.mark.django_db
@pytest.mark.parametrize(("stage", "call"), [("publishing", 2), ("deleting dead rows", 4)])
def test_a_cancel_after_publishing_changes_nothing(
    repo: Path, index: None, cancel_at: Callable[[str, int], Nth], stage: str, call: int
) -> None:
    moment = cancel_at(stage, call)
    run = run_ingest(repo)
    assert moment.happened
    assert run.state == "completed"
    root = queries.find_root(str(repo))
    assert len(chunk_ids(root)) == root.chunks > 0


@pytest.mark.fault("A run is cancelled")
@pytest.mark.django_db
def test_a_folder_is_not_looked_through_to_its_end(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
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
    repo: Path, index: None, cancel_at: Callable[[str, int], Nth], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "MAX_DELETED_NOW", 0)
    cancel_at("publishing", 1)
    assert run_ingest(repo).state == "cancelled"
    assert not Root.objects.exists()
    assert sweep.due.is_set()
    assert SourceFile.objects.exists()
    sweep.sweep()
    assert not SourceFile.objects.exists()
    assert not parts_on_disk()
    assert not sweep.due.is_set()


@pytest.mark.fault("A run is cancelled")
@pytest.mark.django_db
def test_what_a_large_reembed_wrote_answers_nothing_and_is_left_to_the_sweep(
    repo: Path,
    index: None,
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
    rows = SourceFile.objects.filter(root=root)
    assert contents(root) == before
    assert rows.count() == 2 * (root.files + root.skipped)
    sweep.sweep()
    assert rows.count() == root.files + root.skipped
    assert contents(root) == before


@pytest.mark.fault("A run is cancelled")
@pytest.mark.django_db
@pytest.mark.parametrize("again", [False, True])
def test_a_cancel_answers_by_the_rows_whoever_has_executed_the_run(
    client: Client, repo: Path, index: None, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    if again:
        outdate(ingest(repo))
    monkeypatch.setattr(sweep, "MAX_DELETED_NOW", 0)
    with monkeypatch.context() as patch:
        hook("publishing", Nth(1, cancel_now), patch.setattr)
        run = run_ingest(repo)

    def cleanup() -> str:
        # No job is left in memory: it is as if another process had executed the run.
        answer = client.post(f"/ingest/cancel/{run.id}", "", content_type="application/json")
        return str(answer.json()["cleanup"])

    assert cleanup() == "pending"
    sweep.sweep()
    assert cleanup() == "complete"


@pytest.mark.django_db
def test_a_queued_run_interrupts_a_sweep(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)
    monkeypatch.setattr(sweep, "MAX_DELETED_NOW", 0)
    sweep.drop_root(root)
    worker = Worker()
    submit.work_waiting.set()
    worker._sweep()
    assert sweep.due.is_set()
    assert SourceFile.objects.exists() and parts_on_disk()
    sweep.sweep()
    assert not SourceFile.objects.exists() and not parts_on_disk()


@pytest.mark.django_db
@pytest.mark.parametrize(("stage", "call"), [("chunking", 1), ("chunking", 2)])
def test_a_dry_run_can_be_cancelled(
    repo: Path, index: None, cancel_at: Callable[[str, int], Nth], stage: str, call: int
) -> None:
    cancel_at(stage, call)
    assert run_ingest(repo, dry_run=True).state == "cancelled"


@pytest.mark.django_db
def test_a_queued_run_is_cancelled_at_once(client: Client, repo: Path, index: None) -> None:
    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    answer = client.post(f"/ingest/cancel/{run.id}", "", content_type="application/json")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "cleanup": "complete"})
    assert queue.drain() == []
    assert client.get(f"/ingest/status/{run.id}").json()["state"] == "cancelled"
    # It no longer stands in anyone's way.
    assert run_ingest(repo).state == "completed"


@pytest.mark.django_db
def test_cancelling_an_ended_run_changes_nothing(
    client: Client, folder: Path, repo: Path, index: None
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
    assert len(chunk_ids(root)) == root.chunks


@pytest.mark.django_db
@pytest.mark.parametrize("stage", IN_THREAD)
def test_nothing_is_removed_while_a_run_is_active(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    outdate(ingest(repo))
    refused: list[str] = []

    def try_to_remove() -> None:
        with pytest.raises(Conflict) as caught:
            services.remove(str(repo))
        refused.append(caught.value.code)

    with monkeypatch.context() as patch:
        hook(stage, Nth(1, try_to_remove), patch.setattr)
        ingest(repo)
    assert refused == ["BUSY"]
    assert services.remove(str(repo)) is True
    sweep.sweep()
    assert not parts_on_disk()


@pytest.fixture
def worker() -> Iterator[None]:
    """Queued runs are executed."""
    with working():
        yield


@pytest.mark.django_db(transaction=True)
def test_cancel_returns_when_the_worker_has_stopped(
    client: Client, repo: Path, index: None, monkeypatch: pytest.MonkeyPatch, worker: None
) -> None:
    reached, never_cancelled = threading.Event(), threading.Event()

    def wait() -> None:
        reached.set()
        assert never_cancelled.wait(PATIENCE)

    hook("storing", Nth(1, wait), monkeypatch.setattr)
    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    assert reached.wait(PATIENCE)
    assert client.get(f"/ingest/status/{run.id}").json()["state"] == "embedding"
    assert services.cancel(run.id, timeout=0) == "pending"
    monkeypatch.setattr(queue, "CANCEL_SECONDS", PATIENCE)
    never_cancelled.set()
    answer = client.post(f"/ingest/cancel/{run.id}", "", content_type="application/json")
    assert answer.json() == {"status": "ok", "cleanup": "complete"}
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert not parts_on_disk()
    assert client.get("/ingest/roots").json() == {"roots": [], "lockedModelId": None}


@pytest.mark.django_db(transaction=True)
def test_cancel_answers_while_a_batch_is_written_and_the_run_ends_afterwards(
    client: Client, repo: Path, index: None, monkeypatch: pytest.MonkeyPatch, worker: None
) -> None:
    assert queue.CANCEL_SECONDS < 1
    reached, disk_is_free = threading.Event(), threading.Event()

    def wait() -> None:
        reached.set()
        assert disk_is_free.wait(60)

    hook("storing", Nth(1, wait), monkeypatch.setattr)
    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    assert reached.wait(PATIENCE)
    # The disk is not free before the cancel has answered.
    answer = client.post(f"/ingest/cancel/{run.id}", "", content_type="application/json")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "cleanup": "pending"})
    status = client.get(f"/ingest/status/{run.id}").json()
    assert (status["state"], status["message"]) == ("embedding", "Cancelling")
    panels = client.get("/ui/ingest/parts").content.decode()
    assert 'data-speak="lighthouse: Cancelling"' in panels
    assert "Cancelling lighthouse" in re.sub(r"<[^>]*>| (?= )", "", panels)
    assert re.search(r'id="cancel-run" disabled', panels)
    disk_is_free.set()
    assert queue.stop_run(run.id, PATIENCE)
    status = client.get(f"/ingest/status/{run.id}").json()
    assert (status["state"], status["message"]) == ("cancelled", "Cancelled")
    assert not parts_on_disk()


@pytest.mark.django_db
def test_a_removal_deletes_rows_and_the_sweep_deletes_the_parts(
    client: Client, repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else deletes while this process has a worker."""
    root = ingest(repo)
    with monkeypatch.context() as patch:
        patch.setattr(supervisor, "state", lambda: "ready")
        path = f"/ingest/remove/{root.path}"
        answer = client.post(path, "", content_type="application/json")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "unlocked": True})
    assert client.get("/ingest/roots").json() == {"roots": [], "lockedModelId": None}
    assert sweep.due.is_set()
    assert parts_on_disk()
    sweep.sweep()
    assert not parts_on_disk()


@pytest.mark.fault("A run is cancelled")
@pytest.mark.django_db(transaction=True)
def test_cancel_does_not_wait_for_what_is_left_to_the_sweep(
    client: Client, repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "MAX_DELETED_NOW", 0)
    reached = threading.Event()

    def wait() -> None:
        reached.set()
        (job,) = queue.jobs.values()
        wait_until(lambda: job.cancelled)

    hook("publishing", Nth(1, wait), monkeypatch.setattr)
    # The worker would sweep as soon as the run has ended, and may be done before the answer.
    with monkeypatch.context() as patch, working():
        patch.setattr(sweep, "sweep", lambda check: None)
        run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
        assert reached.wait(PATIENCE)
        answer = client.post(f"/ingest/cancel/{run.id}", "", content_type="application/json")
        queue.stop_run(run.id, PATIENCE)
    assert answer.json() == {"status": "ok", "cleanup": "pending"}
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert client.get("/ingest/roots").json()["roots"] == []
    sweep.sweep()
    assert not parts_on_disk()


@pytest.mark.django_db(transaction=True)
def test_a_flag_set_by_another_process_is_seen(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch, worker: None
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
    assert reached.wait(PATIENCE)
    IngestRun.objects.filter(id=run.id).update(cancel_requested=True)
    queue.stop_run(run.id, PATIENCE)
    run.refresh_from_db()
    assert run.state == "cancelled"


@pytest.mark.django_db(transaction=True)
def test_stopping_the_server_interrupts_the_run_and_keeps_the_queue(
    folder: Path, repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ingest(repo)
    second = ingest(write_files(folder / "other", {"o.py": "o = 1\n"}), "other")
    outdate(first)
    outdate(second)
    reached, never_cancelled = threading.Event(), threading.Event()

    def wait() -> None:
        reached.set()
        assert never_cancelled.wait(PATIENCE)

    hook("embedding", Nth(1, wait), monkeypatch.setattr)
    active, waiting = submit.queue_reembeds([first.id, second.id])
    with working():
        assert reached.wait(PATIENCE)
        threading.Timer(0.05, never_cancelled.set).start()
    active.refresh_from_db()
    waiting.refresh_from_db()
    assert (active.state, active.last_error) == ("error", "Interrupted")
    assert waiting.state == "queued"
    assert len(chunk_ids(first)) == first.chunks
    assert queue.drain() != []
    waiting.refresh_from_db()
    assert waiting.state == "completed"
