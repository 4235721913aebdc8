"""Changes of the index wait while it is frozen, in whatever process they are."""

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.test import Client

from apps.core.config import config
from apps.core.errors import Conflict, Unavailable
from apps.index import freeze
from apps.index.models import Root
from tests.support.changing import other_process
from tests.support.ingested import ingest, outdate, run_ingest
from tests.support.locked import locked_elsewhere
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.door


@pytest.mark.fault("A backup is made or stopped")
def test_another_process_changes_nothing_while_the_index_is_frozen() -> None:
    with freeze.frozen(), other_process() as other:
        assert other.says() == "BUSY"
        with freeze.changing(wait=False), freeze.changing():
            pass  # this thread may
    with other_process() as other:
        assert [other.says(), other.says(), other.end()] == ["free", "changing", "changed"]


@pytest.mark.fault("A backup is made or stopped")
def test_what_waits_in_another_process_goes_on_after_the_freeze() -> None:
    with ExitStack() as beside:
        with freeze.frozen():
            other = beside.enter_context(other_process())
            assert other.says() == "BUSY"
        assert other.says() == "changing"
        with pytest.raises(Conflict, match="too long"), freeze.frozen(given_up):
            pass
        assert other.end() == "changed"


def given_up() -> None:
    raise Conflict("It takes too long.")


@pytest.mark.fault("A backup is made or stopped")
def test_a_killed_process_holds_up_no_freeze() -> None:
    killed: list[int] = []
    with other_process() as other:
        assert [other.says(), other.says()] == ["free", "changing"]

        def kill() -> None:
            killed.append(1)
            other.kill()

        with freeze.frozen(check=kill), pytest.raises(Conflict):
            change_in_a_thread()
    assert killed


def change_in_a_thread() -> None:
    raised: list[Conflict] = []

    def change() -> None:
        try:
            with freeze.changing(wait=False):
                pass
        except Conflict as error:
            raised.append(error)

    thread = threading.Thread(target=change)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


@pytest.mark.fault("A backup is made or stopped")
def test_no_change_begins_while_a_freeze_waits_for_those_in_progress() -> None:
    asked, entered = threading.Event(), threading.Event()

    def freeze_it() -> None:
        with freeze.frozen(check=asked.set):
            entered.set()

    thread = threading.Thread(target=freeze_it)
    with freeze.changing():
        thread.start()
        assert asked.wait(PATIENCE)
        with pytest.raises(Conflict):
            change_in_a_thread()
        with freeze.changing(wait=False):
            pass  # it has begun before
        assert not entered.is_set()
    assert entered.wait(PATIENCE)
    thread.join()
    change_in_a_thread()


@pytest.mark.fault("A backup is made or stopped")
@pytest.mark.django_db
def test_where_the_files_cannot_be_locked_nothing_changes_and_the_reason_is_told(
    repo: Path, index: None, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)
    outdate(root)
    before = Root.objects.values_list("generation", "parts", "revision").get()
    with monkeypatch.context() as patch:
        patch.setattr(freeze, "CHANGES", "index")  # a folder
        run = run_ingest(repo)
        assert run.state == "error" and "cannot be locked" in run.last_error
        answer = client.post(f"/ingest/remove/{root.path}", "", content_type="application/json")
        assert answer.status_code == 503 and "cannot be locked" in answer.json()["message"]
        with pytest.raises(Unavailable), freeze.frozen():
            pass
    assert Root.objects.values_list("generation", "parts", "revision").get() == before
    assert run_ingest(repo).state == "completed"


def test_a_freeze_waits_for_another_and_can_be_given_up() -> None:
    with (
        locked_elsewhere(config().data_dir / freeze.FREEZE),
        pytest.raises(Conflict, match="too long"),
        freeze.frozen(given_up),
    ):
        pass
    with freeze.frozen():
        pass
