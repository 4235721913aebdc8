"""Ingests by a worker of Celery, with a broker in memory."""

from pathlib import Path

import pytest
from celery.contrib.testing.worker import start_worker

from apps.core.config import config
from apps.embedding.static import MODEL_ID
from apps.index import changes, scrubbed
from apps.index.models import IngestRun
from apps.ingest import services, tasks
from apps.ingest.runs import queue
from apps.ingest.worker.supervisor import supervisor
from codeinfo.celery import app
from tests.ingest.brokers import broker
from tests.support.ingested import ingest

__all__ = ["broker"]


@pytest.mark.door
@pytest.mark.django_db(transaction=True)
def test_the_worker_ingests_what_this_process_only_queues(
    repo: Path, broker: None, index: None
) -> None:
    supervisor.start()
    assert supervisor.state() == "absent"
    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    assert IngestRun.objects.get(id=run.id).state == "queued"
    with start_worker(app, pool="solo", perform_ping_check=False):
        assert queue.stop_run(run.id, timeout=60)
    run.refresh_from_db()
    assert run.state == "completed", run.last_error


def test_a_worker_begins_with_a_sweep_and_a_check() -> None:
    for event in changes.DUE.values():
        event.clear()
    try:
        tasks.begin()
        assert all(event.is_set() for event in changes.DUE.values())
    finally:
        for event in changes.DUE.values():
            event.clear()


@pytest.mark.fault("A file of the index changes on the disk")
@pytest.mark.django_db(transaction=True)
@pytest.mark.door
def test_once_a_day_a_worker_compares_all_files(repo: Path, broker: None, index: None) -> None:
    (entry,) = (one for one in app.conf.beat_schedule.values() if one["task"].endswith("compare"))
    assert entry["schedule"] == scrubbed.DAY_SECONDS
    ingest(repo, "lighthouse")
    (config().data_dir / "scrub.json").unlink(missing_ok=True)
    app.tasks[entry["task"]]()
    tasks.work()
    assert scrubbed.read().finished_at > 0
    changes.check_due.clear()


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_shuts_down_leaves_the_queue(repo: Path, broker: None) -> None:
    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    tasks.end()
    tasks.work()
    run.refresh_from_db()
    assert run.state == "queued"


@pytest.mark.django_db(transaction=True)
def test_without_a_broker_the_run_is_queued_all_the_same(
    repo: Path, broker: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.conf, "broker_url", "redis://127.0.0.1:1/0")
    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    run.refresh_from_db()
    assert run.state == "queued"
