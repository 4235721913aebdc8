"""The loop of the worker, its end, and what its server does with what it tells."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from apps.core.system import programs
from apps.embedding.static import MODEL_ID
from apps.index import changes, endings
from apps.index.endings import CANCELLED
from apps.index.models import IngestRun
from apps.index.types import Check
from apps.ingest import services
from apps.ingest.runs import integrity, sweep
from apps.ingest.runs.submit import work_waiting
from apps.ingest.worker import loop, orders, reports
from apps.ingest.worker.loop import Worker
from apps.ingest.worker.supervisor import Supervisor
from tests.support.ingested import ingest
from tests.support.waiting import wait_until
from tests.support.working import tidy


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_was_just_told_of_something_is_not_idle(index: None) -> None:
    worker = Worker()
    tidy(worker)
    wait_until(lambda: worker.idle_seconds() > 0)
    orders.due(["sweep"])
    assert worker.idle_seconds() == 0


@pytest.mark.django_db(transaction=True)
def test_no_run_begins_when_the_worker_has_found_that_it_ends(repo: Path, index: None) -> None:
    queued: list[IngestRun] = []

    def is_over() -> bool:
        queued.append(services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID))
        return True

    Worker().run(is_over)
    (run,) = queued
    run.refresh_from_db()
    assert run.state == "queued"


@pytest.mark.door
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("seconds", "first"), [(math.inf, "skipped"), (0.0, "queued")])
def test_a_run_comes_before_a_check_that_was_not_put_off_for_long(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch, seconds: float, first: str
) -> None:
    monkeypatch.setattr(loop, "PUT_OFF_SECONDS", seconds)
    for due in (changes.sweep_due, changes.check_due, changes.scrub_due):
        due.clear()
    worker = Worker()
    assert not worker.turn()
    checked: list[str] = []

    def check(before_each: Check) -> None:
        checked.append(IngestRun.objects.latest("queued_at").state)

    monkeypatch.setattr(integrity, "check", check)
    changes.check_due.set()
    for _ in range(2):
        assert checked == []
        services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
        assert worker.turn()
    worker.turn()
    assert checked[0] == first


@pytest.mark.door
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("seconds", "sweeps"), [(math.inf, 1), (0.0, 2)])
def test_a_sweep_that_was_put_off_for_long_is_tried_again_in_the_next_turn(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch, seconds: float, sweeps: int
) -> None:
    monkeypatch.setattr(loop, "PUT_OFF_SECONDS", seconds)
    worker, swept = Worker(), list[str]()
    changes.sweep_due.set()

    def interrupted(check: Check) -> None:
        swept.append("")
        work_waiting.set()
        check()

    monkeypatch.setattr(sweep, "sweep", interrupted)
    for _ in range(2):
        worker.turn()
    assert len(swept) == sweeps


@pytest.mark.door
@pytest.mark.django_db(transaction=True)
def test_a_check_gives_way_between_the_files_of_a_root(repo: Path, index: None) -> None:
    root = ingest(repo, "lighthouse")
    times: list[None] = []
    integrity.check(lambda: times.append(None))
    assert len(times) > root.files > 1


def test_a_worker_without_unsaved_ends_leaves_those_of_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = IngestRun().id
    monkeypatch.setattr(endings, "unsaved", {run: (CANCELLED, timezone.now())})
    reports.not_saved({})
    assert run in endings.unsaved


@pytest.mark.parametrize(("mode", "follows"), [("vector", True), ("hybrid", False)])
def test_where_the_server_has_chroma_follow_it_is_told_of_what_the_worker_publishes(
    mode: str, follows: bool, configure: Callable[..., None]
) -> None:
    configure(retrieval_mode=mode)
    changes.chroma_due.clear()
    reports.changed(changes.ROOTS, "")
    assert changes.chroma_due.is_set() == follows


@pytest.mark.django_db(transaction=True)
def test_a_worker_starts_before_a_run_is_queued_that_is_expected(
    index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*args: Any, **options: Any) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(programs, "start", start)
    monkeypatch.setattr("apps.ingest.worker.supervisor.RESTART_SECONDS", 60.0)
    # Nothing else is to be done.
    monkeypatch.setattr(changes, "all_due", lambda: None)
    for due in changes.DUE.values():
        due.clear()
    supervisor = Supervisor()
    supervisor.start()
    try:
        work_waiting.set()
        wait_until(lambda: not work_waiting.is_set())
        assert supervisor.state() == "ready"
        supervisor.expect()
        wait_until(lambda: supervisor.state() == "lost")
    finally:
        supervisor.stop()


@pytest.mark.fault("The worker is killed or stopped")
@pytest.mark.django_db(transaction=True)
def test_a_worker_that_cannot_be_started_is_lost_and_waited_for(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[None] = []

    def start(*args: Any, **options: Any) -> None:
        tries.append(None)
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(programs, "start", start)
    monkeypatch.setattr("apps.ingest.worker.supervisor.RESTART_SECONDS", 60.0)
    services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    supervisor = Supervisor()
    supervisor.start()
    try:
        wait_until(lambda: supervisor.state() == "lost")
        work_waiting.set()  # it is not tried again before the pause has ended
        wait_until(lambda: not work_waiting.is_set())
    finally:
        supervisor.stop()
    assert len(tries) == 1
