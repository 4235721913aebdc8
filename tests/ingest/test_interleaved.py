"""What races with publishing and with the model lock, in hundreds of orders of their statements.
The rows afterwards say what holds in each."""

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from apps.embedding.static import MODEL_ID
from apps.index.endings import COMPLETED, Ending
from apps.index.models import IndexLock, IngestRun, Root
from apps.ingest import services
from apps.ingest.runs import lock, pipeline, queue, recovery
from apps.ingest.runs.delta import Delta
from apps.ingest.runs.generation import Generation
from apps.ingest.runs.job import Job
from apps.ingest.types import Skipped
from tests.support.turns import orders

pytestmark = [pytest.mark.door, pytest.mark.django_db(transaction=True)]

ORDERS = 400
# Each of two ends must be seen, or the test would show nothing.
SOME = ORDERS / 20
CHANGED = Delta([], [Skipped("a.png", "Binary", 1)], [], 0, 0)


def publish(run: IngestRun, job: Job) -> Ending:
    """The last step of an ingest."""
    Generation(Root.objects.get(path=run.path), run, job.check).publish(CHANGED)
    return COMPLETED


def publish_locked(run: IngestRun, job: Job) -> Ending:
    lock.take(run, 256)
    ending = publish(run, job)
    Root.objects.filter(path=run.path).update(chunks=1)  # which it has no rows for
    return ending


@pytest.fixture
def run() -> IngestRun:
    """A run of a root."""
    Root.objects.create(path="/a", name="a", model=MODEL_ID, generation=1)
    fields = {"path": "/a", "name": "a", "model": MODEL_ID, "operation": "start"}
    return IngestRun.objects.create(state="embedding", **fields)


def again(run: IngestRun, state: str, **root: Any) -> None:
    """As before the run."""
    values = {"message": "", "last_error": "", "cancel_requested": False, "publishing": False}
    IngestRun.objects.filter(id=run.id).update(state=state, heartbeat_at=None, **values)
    values = {"last_run_id": None, "fenced_run_id": None, "last_state": "", **root}
    Root.objects.update(**values)


def has_published(run: IngestRun) -> bool:
    run.refresh_from_db()
    root = Root.objects.get()
    assert (root.generation == 2) == (root.last_run_id == run.id)
    assert root.last_state == run.state
    return root.generation == 2


@pytest.mark.fault("A run is cancelled")
def test_a_run_is_cancelled_or_published_and_never_both(
    run: IngestRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "ingest", publish)
    elsewhere = False
    stop_run = queue.stop_run
    # In half of the orders another process cancels it.
    monkeypatch.setattr(queue, "stop_run", lambda *args: not elsewhere and stop_run(*args))
    ends: Counter[str] = Counter()
    cancel = orders(
        ORDERS, monkeypatch, lambda: queue.execute(run), lambda: services.cancel(run.id, 0)
    )
    for order in cancel:
        assert has_published(run) == (run.state == "completed")
        assert run.cancel_requested == (run.state == "cancelled")
        ends[run.state] += 1
        elsewhere = order % 2 == 0
        again(run, "embedding", generation=1)
    assert ends.keys() == {"completed", "cancelled"} and min(ends.values()) > SOME


@pytest.mark.fault("A run is cancelled")
def test_a_run_whose_process_is_taken_for_dead_is_interrupted_or_published_and_never_both(
    run: IngestRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "ingest", publish)
    long_ago = timezone.now() - timedelta(hours=1)

    def take_for_dead() -> None:
        IngestRun.objects.filter(id=run.id).update(heartbeat_at=long_ago)
        recovery.end_stale()

    ends: Counter[str] = Counter()
    for _ in orders(ORDERS, monkeypatch, lambda: queue.execute(run), take_for_dead):
        assert has_published(run) == (run.state == "completed")
        assert bool(run.last_error) == (run.state == "error")
        ends[run.last_error] += 1
        again(run, "embedding", generation=1)
    assert min(ends[""], ends["Interrupted"]) > SOME


@pytest.mark.fault("A run is cancelled")
def test_no_run_that_starts_loses_the_model_lock(
    run: IngestRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process releases the lock of an index that seems to be empty."""
    monkeypatch.setattr(pipeline, "ingest", publish_locked)
    released: Counter[bool] = Counter()
    ends = False

    def start() -> None:
        claimed = queue.claim()
        assert claimed
        if ends:
            queue.execute(claimed)
        else:
            lock.take(claimed, 256)

    def release() -> None:
        released[lock.release()] += 1

    IndexLock.objects.create(model=MODEL_ID, dimension=256)
    again(run, "queued", generation=0)
    for order in orders(ORDERS, monkeypatch, start, release):
        run.refresh_from_db()
        assert run.state == ("completed" if ends else "scanning")
        assert IndexLock.objects.filter(model=MODEL_ID).exists()
        ends = order % 2 == 0
        again(run, "queued", generation=0, chunks=0)
        IndexLock.objects.update(token=uuid4())  # of a run before this one
    assert min(released[False], released[True]) > SOME
