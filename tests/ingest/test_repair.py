"""What `verify` finds is mended: from the rows or the folder, whichever is left."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from apps.core.config import config
from apps.core.errors import Conflict, Unavailable
from apps.index import endings, freeze, queries
from apps.index.endings import Ending
from apps.index.models import IndexLock, IngestRun, Root, SourceFile
from apps.index.texts import get_texts
from apps.ingest import services
from apps.ingest.runs import submit, sweep
from apps.ingest.runs.job import RunCancelled
from apps.ingest.verification import outcome
from apps.ingest.verification.outcome import compare_all
from apps.ingest.worker.supervisor import supervisor
from tests.support.ingested import ingest, write_files
from tests.support.locked import locked_elsewhere
from tests.support.parts import lose_parts, spoil_part
from tests.support.verification import verify
from tests.support.waiting import PATIENCE

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def miscount(root: Root) -> None:
    Root.objects.update(chunks=99, files=0)


def lose_a_text(root: Root) -> None:
    key = queries.live_files(root).filter(chunks__gt=0)[0].sha256
    get_texts().discard([key], lambda keys: ())


def leave_a_dead_row(root: Root) -> None:
    SourceFile.objects.create(root=root, run_id=root.last_run_id, path="b.py", chunks=1, since=99)


def unlock(root: Root) -> None:
    IndexLock.objects.all().delete()


def lock_another(root: Root) -> None:
    IndexLock.objects.update(model="openai:other", dimension=3)


def change_the_folder(root: Root) -> None:
    write_files(Path(root.path), {"src/new.py": "def fresh() -> int:\n    return 1\n"})
    (Path(root.path) / "main.txt").unlink()


@pytest.mark.fault("Rows, parts and folders disagree")
@pytest.mark.parametrize(
    "harm",
    [
        lose_parts,
        spoil_part,
        miscount,
        lose_a_text,
        leave_a_dead_row,
        unlock,
        lock_another,
        change_the_folder,
    ],
)
def test_whatever_was_done_to_an_index_is_mended(
    repo: Path, index: None, harm: Callable[[Root], None]
) -> None:
    harm(ingest(repo))
    assert verify(source=True)
    outcome = compare_all(source=True, with_repair=True)
    assert outcome.found_first > 0
    assert outcome.differences == []
    assert verify(source=True) == []


@pytest.mark.fault("Rows, parts and folders disagree")
def test_what_cannot_be_mended_stays_and_is_told(repo: Path, index: None) -> None:
    root = ingest(repo)
    lose_a_text(root)
    repo.rename(repo.with_name("elsewhere"))
    outcome = compare_all(with_repair=True)
    assert [each.kind for each in outcome.differences] == ["texts_missing"]
    assert not outcome.is_whole
    # The old answers are all there is: they stay.
    assert queries.find_root(root.path).parts == root.parts


def test_an_index_of_which_nothing_differs_is_left_alone(repo: Path, index: None) -> None:
    root = ingest(repo)
    assert compare_all(with_repair=True).found_first == 0
    assert IngestRun.objects.count() == 1
    assert queries.find_root(root.path).generation == 1


def test_a_frozen_index_publishes_when_it_is_thawed_and_removing_is_refused(
    repo: Path, index: None
) -> None:
    root = ingest(repo)
    waiting, done = threading.Event(), threading.Event()

    def change() -> None:
        waiting.set()
        with freeze.changing():
            done.set()

    with freeze.frozen():
        other = threading.Thread(target=change)
        other.start()
        assert waiting.wait(PATIENCE)
        with freeze.changing():  # whoever has frozen it may
            assert not done.is_set()
    assert done.wait(PATIENCE)
    other.join()
    assert queries.find_root(root.path)


def test_removing_is_refused_while_the_index_is_frozen(repo: Path, index: None) -> None:
    root = ingest(repo)
    with (
        locked_elsewhere(config().data_dir / freeze.FREEZE),
        pytest.raises(Conflict, match="backup") as refused,
    ):
        services.remove(root.path)
    assert refused.value.code == "BUSY"
    assert Root.objects.exists()
    services.remove(root.path)


def test_waiting_to_freeze_can_be_given_up() -> None:
    entered, leave = threading.Event(), threading.Event()

    def change() -> None:
        with freeze.changing():
            entered.set()
            leave.wait(PATIENCE)

    def stop() -> None:
        raise RunCancelled

    thread = threading.Thread(target=change)
    thread.start()
    assert entered.wait(PATIENCE)
    with pytest.raises(RunCancelled), freeze.frozen(stop):
        pass
    leave.set()
    thread.join()
    with freeze.frozen(), freeze.changing():
        pass


def test_a_root_that_is_being_ingested_is_not_mended(repo: Path, index: None) -> None:
    root = ingest(repo)
    lose_parts(root)
    IngestRun.objects.create(operation="reembed", path=root.path, name=root.name, state="embedding")
    outcome = compare_all(with_repair=True)
    assert {each.kind for each in outcome.differences} == {"index_unreadable"}
    assert supervisor.state() == "absent"


@pytest.mark.fault("Rows, parts and folders disagree")
def test_a_freeze_that_begins_while_a_root_is_removed_waits_for_its_end(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)
    begun, over, order = threading.Event(), threading.Event(), []

    def freeze_it() -> None:
        with freeze.frozen(check=begun.set):
            order.append("frozen")
            begun.set()
            over.wait(PATIENCE)

    other = threading.Thread(target=freeze_it)
    enter, drop = services._enter, sweep.drop_root

    def enter_late(**fields: Any) -> IngestRun:
        other.start()
        assert begun.wait(PATIENCE)
        return enter(**fields)

    def drop_root(*arguments: Any, **options: Any) -> None:
        drop(*arguments, **options)
        order.append("deleted")

    monkeypatch.setattr(services, "_enter", enter_late)
    monkeypatch.setattr(sweep, "drop_root", drop_root)
    services.remove(root.path)
    over.set()
    other.join()
    assert order == ["deleted", "frozen"]


def cancelled_soon() -> Callable[[], None]:
    """A check that stops what would go on for ever."""
    calls = iter(range(3))

    def check() -> None:
        if next(calls, None) is None:
            raise RunCancelled

    return check


@pytest.mark.fault("Rows, parts and folders disagree")
def test_a_repair_does_not_wait_for_a_run_whose_end_is_not_saved_yet(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)
    run = services.reembed(root.path)
    ended = {run.id: (Ending.failed("disk full"), timezone.now())}
    monkeypatch.setattr(endings, "unsaved", ended)
    monkeypatch.setattr(submit, "queue_reembeds", lambda root_ids: [])
    monkeypatch.setattr(supervisor, "state", lambda: "ready")
    outcome._reingest([root.id], cancelled_soon(), lambda message: None)


@pytest.mark.fault("Rows, parts and folders disagree")
@pytest.mark.parametrize("state", ["lost", "absent"])
def test_a_repair_ends_where_the_worker_has(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    root = ingest(repo)
    states = iter(["ready"])
    monkeypatch.setattr(supervisor, "state", lambda: next(states, state))
    with pytest.raises(Unavailable, match="worker"):
        outcome._reingest([root.id], cancelled_soon(), lambda message: None)
