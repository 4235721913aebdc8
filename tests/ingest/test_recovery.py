"""kill -9 inside a run, and what the next start makes of it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone

from apps.embedding.static import MODEL_ID
from apps.index import endings, queries
from apps.index.models import IndexLock, IngestRun, Root, SourceFile
from apps.ingest import services
from apps.ingest.runs import integrity, queue, recovery, sweep
from apps.ingest.runs.batches import READ_AT_ONCE as FIRST_SLICE
from tests.ingest.stages import STAGES
from tests.support.ingested import files_of, ingest, ingest_alone, outdate, write_files
from tests.support.parts import chunk_ids, parts_on_disk, unlisted_parts
from tests.support.zombies import zombie

pytestmark = pytest.mark.door

HOME = Path(__file__).resolve().parents[2]
BEFORE_PUBLISHING = STAGES[: STAGES.index("publishing")]

Contents = Callable[[Root], dict[str, str]]
DieAt = Callable[[str, int], None]


@pytest.fixture(scope="module")
def mortals(django_db_setup: None) -> Iterator[subprocess.Popen[str]]:
    """The process that forks those who are to die (see `dying`)."""
    environ = os.environ | {
        "DJANGO_SETTINGS_MODULE": "codeinfo.settings",
        "CODEINFO_DATA_DIR": str(settings.DATA_DIR),
        "DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
    }
    command = [sys.executable, "-m", "tests.ingest.dying"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=HOME, env=environ, stdin=pipe, stdout=pipe, text=True) as it:
        yield it


@pytest.fixture
def die_at(mortals: subprocess.Popen[str]) -> DieAt:
    """die_at(stage, call): another process works on the queue until it kills itself there."""

    def die(stage: str, call: int) -> None:
        assert mortals.stdin and mortals.stdout
        print(stage, call, file=mortals.stdin, flush=True)
        assert mortals.stdout.readline().strip() == str(-signal.SIGKILL)

    return die


def start_anew() -> None:
    """What a start does: end the dead runs, then sweep."""
    recovery.recover()
    sweep.sweep()


def only_what_is_live(root: Root) -> bool:
    """The parts hold the chunks of the live files, and the rows no other files."""
    root.refresh_from_db()
    files = SourceFile.objects.filter(root=root)
    assert len(chunk_ids(root)) == root.chunks and not unlisted_parts()
    return files.count() == files.live().count()


@pytest.mark.fault("The server is killed during an ingest")
@pytest.mark.door
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("stage", "call"), [*((stage, 1) for stage in BEFORE_PUBLISHING), ("parts", 2)]
)
def test_a_first_ingest_that_was_killed_leaves_nothing(
    repo: Path, index: None, contents: Contents, die_at: DieAt, stage: str, call: int
) -> None:
    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    die_at(stage, call)
    assert queries.published_roots() == []
    start_anew()
    run.refresh_from_db()
    assert (run.state, run.last_error, run.slot) == ("error", "Interrupted", None)
    assert not Root.objects.exists()
    assert not SourceFile.objects.exists()
    assert not IndexLock.objects.exists()
    assert not parts_on_disk()
    assert len(contents(ingest(repo))) >= 4


@pytest.mark.fault("The server is killed during an ingest")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("stage", "call"), [("parts", 3), ("parts", 4), ("publishing", 1)])
def test_a_first_ingest_that_was_killed_after_a_slice_says_so_and_is_completed(
    client: Client,
    folder: Path,
    index: None,
    contents: Contents,
    die_at: DieAt,
    stage: str,
    call: int,
) -> None:
    many = {f"f{n}.py": f"def f{n}():\n    return {n}\n" for n in range(2 * FIRST_SLICE)}
    repo = write_files(folder / "lighthouse", many)
    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    die_at(stage, call)
    start_anew()
    run.refresh_from_db()
    assert (run.state, run.last_error) == ("error", "Interrupted")
    root = queries.find_root(str(repo))
    assert (root.files, root.last_state) == (FIRST_SLICE, "error")
    assert only_what_is_live(root)
    body = {"pattern": "def f", "limit": 100}
    answer = client.post("/tools/grep", body, content_type="application/json").json()
    assert answer["partial"].startswith(f"lighthouse: {FIRST_SLICE} of {len(many)} files")
    integrity.check()
    queue.drain()
    answer = client.post("/tools/grep", body, content_type="application/json").json()
    assert "partial" not in answer
    assert queries.find_root(str(repo)).files == len(many)
    assert only_what_is_live(root)
    assert_equals_clean(folder, repo, contents)


@pytest.mark.fault("A run is cancelled")
@pytest.mark.django_db(transaction=True)
def test_of_a_cancelled_first_ingest_that_is_killed_before_it_has_seen_it_nothing_is_left(
    folder: Path, index: None, die_at: DieAt
) -> None:
    many = {f"f{n}.py": f"def f{n}():\n    return {n}\n" for n in range(2 * FIRST_SLICE)}
    repo = write_files(folder / "lighthouse", many)
    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    die_at("parts", 3)
    assert services.cancel(run.id, timeout=0) == "pending"
    start_anew()
    integrity.check()
    assert queue.drain() == []
    assert not Root.objects.exists() and not SourceFile.objects.exists()
    assert not parts_on_disk()


@pytest.mark.fault("The server is killed during an ingest")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("stage", "call"),
    [("discovery", 2), ("rows", 2), ("storing", 1), ("parts", 2), ("publishing", 1)],
)
def test_a_reembed_that_was_killed_keeps_the_old_index(
    folder: Path, repo: Path, index: None, contents: Contents, die_at: DieAt, stage: str, call: int
) -> None:
    root = ingest(repo)
    before = contents(root)
    change(repo)
    run = services.reembed(str(repo))
    die_at(stage, call)
    # Before anything is repaired, the old answers are there.
    assert contents(root) == before
    start_anew()
    assert contents(root) == before
    assert only_what_is_live(root)
    run.refresh_from_db()
    assert (run.state, run.last_error) == ("error", "Interrupted")
    assert_equals_clean(folder, repo, contents)


@pytest.mark.fault("The server is killed during an ingest")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("stage", "call"), [("publishing", 2), ("deleting dead rows", 4)])
def test_a_run_killed_after_it_published_is_completed(
    folder: Path, repo: Path, index: None, contents: Contents, die_at: DieAt, stage: str, call: int
) -> None:
    root = ingest(repo)
    change(repo)
    run = services.reembed(str(repo))
    die_at(stage, call)
    root.refresh_from_db()
    new = contents(root)
    start_anew()
    run.refresh_from_db()
    assert (run.state, run.last_error) == ("completed", "")
    assert (run.files, root.files) == (2, 4)
    assert contents(root) == new
    assert only_what_is_live(root)
    assert_equals_clean(folder, repo, contents)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("swept", [True, False])
@pytest.mark.parametrize("known", [True, False], ids=["known", "first"])
def test_a_run_that_waits_behind_a_killed_one_publishes_only_its_own(
    folder: Path,
    repo: Path,
    index: None,
    contents: Contents,
    die_at: DieAt,
    known: bool,
    swept: bool,
) -> None:
    if known:
        outdate(ingest(repo))
        services.reembed(str(repo))
    else:
        services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    die_at("publishing", 1)
    recovery.recover()
    change(repo)
    services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    if swept:
        sweep.sweep()
    queue.drain()
    root = Root.objects.get()
    assert root.files == SourceFile.objects.live().ingested().count() == 4
    assert only_what_is_live(root)
    assert_equals_clean(folder, repo, contents)


def change(repo: Path) -> None:
    (repo / "main.txt").unlink()
    write_files(repo, {"src/retry.py": "def changed() -> None:\n    pass\n", "new.md": "# New\n"})


def assert_equals_clean(folder: Path, repo: Path, contents: Contents) -> None:
    outdate(queries.find_root(str(repo)))
    second = ingest(repo)
    clean = ingest_alone(write_files(folder / "copy", files_of(repo)), "copy")
    assert contents(second) == contents(clean)
    assert len(chunk_ids(second)) == len(chunk_ids(clean))


@pytest.mark.django_db
def test_queued_runs_stay_queued(repo: Path, index: None) -> None:
    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    start_anew()
    queue.drain()
    run.refresh_from_db()
    assert run.state == "completed"


@pytest.mark.fault("The server is killed during an ingest")
@pytest.mark.django_db
def test_a_removal_that_was_cut_off_is_finished(repo: Path, index: None) -> None:
    root = ingest(repo)
    run = IngestRun.objects.create(
        operation="remove", path=root.path, name=root.name, state="scanning", owner="gone:1:x"
    )
    # It had come as far as the row.
    root.delete()
    assert SourceFile.objects.exists() and parts_on_disk()
    start_anew()
    run.refresh_from_db()
    assert (run.state, run.message) == ("completed", "Removed")
    assert not SourceFile.objects.exists()
    assert not parts_on_disk()
    assert not IndexLock.objects.exists()


@pytest.mark.fault("The server is killed during an ingest")
@pytest.mark.django_db
def test_a_sweep_leaves_what_is_live(repo: Path, index: None, contents: Contents) -> None:
    root = ingest(repo)
    before = contents(root)
    start_anew()
    assert contents(root) == before
    assert only_what_is_live(root)
    assert queries.locked_model() == MODEL_ID


def running(owner: str, **values: object) -> IngestRun:
    return IngestRun.objects.create(
        operation="start", path="/x", name="x", state="embedding", owner=owner, **values
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("owner", "seconds_silent", "ended"),
    [
        (f"{recovery.HOST}:{os.getppid()}:other", 5, False),
        (f"{recovery.HOST}:{os.getppid()}:other", 31, True),
        (f"{recovery.HOST}:4194305:other", 5, True),
        (f"{recovery.HOST}:{os.getpid()}:other", 5, True),
        ("elsewhere:1:other", 5, False),
        ("elsewhere:1:other", 31, True),
        (recovery.OWNER, 31, False),
    ],
    ids=[
        "neighbour alive",
        "neighbour silent",
        "neighbour gone",
        "our number, another life",
        "elsewhere alive",
        "elsewhere silent",
        "ourselves",
    ],
)
@pytest.mark.parametrize("shared", [{"chroma_url": "http://a:1"}, {"celery_broker_url": "memory:"}])
def test_in_a_shared_data_folder_a_live_worker_of_another_process_is_left_alone(
    configure: Callable[..., None],
    shared: dict[str, str],
    owner: str,
    seconds_silent: int,
    ended: bool,
) -> None:
    configure(**shared)
    run = running(owner, heartbeat_at=timezone.now() - timedelta(seconds=seconds_silent))
    recovery.recover()
    run.refresh_from_db()
    assert (run.state == "error") is ended


@pytest.mark.django_db
def test_in_a_folder_that_is_not_shared_every_other_process_has_ended(
    configure: Callable[..., None],
) -> None:
    configure(chroma_url="")
    run = running(f"{recovery.HOST}:{os.getppid()}:other", heartbeat_at=timezone.now())
    recovery.recover()
    run.refresh_from_db()
    assert (run.state, run.last_error) == ("error", "Interrupted")


@pytest.mark.django_db
def test_a_run_of_a_neighbour_that_is_dead_and_not_buried_is_ended(
    configure: Callable[..., None],
) -> None:
    configure(chroma_url="http://127.0.0.1:1")
    with zombie() as pid:
        run = running(f"{recovery.HOST}:{pid}:other", heartbeat_at=timezone.now())
        recovery.recover()
    run.refresh_from_db()
    assert run.state == "error"


@pytest.mark.django_db
def test_a_run_that_falls_silent_is_ended_while_serving() -> None:
    silent = running("elsewhere:1:x", heartbeat_at=timezone.now() - timedelta(seconds=31))
    alive = running("elsewhere:1:x", heartbeat_at=timezone.now())
    recovery.end_stale()
    silent.refresh_from_db()
    alive.refresh_from_db()
    assert (silent.state, silent.last_error) == ("error", "Interrupted")
    assert alive.state == "embedding"


@pytest.mark.django_db
def test_the_rows_of_a_stale_run_are_swept() -> None:
    sweep.due.clear()
    recovery.end_stale()
    assert not sweep.due.is_set()
    running("elsewhere:1:x", heartbeat_at=timezone.now() - timedelta(seconds=31))
    recovery.end_stale()
    assert sweep.due.is_set()


@pytest.mark.django_db
def test_a_removal_that_the_database_stops_does_not_block_the_queue(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)

    def locked(root: Root, **how: object) -> None:
        raise OperationalError("database is locked")

    with monkeypatch.context() as patched:
        patched.setattr(sweep, "drop_root", locked)
        with pytest.raises(OperationalError):
            services.remove(root.path)
    run = IngestRun.objects.get(operation="remove")
    assert (run.state, run.last_error, run.slot) == ("error", "database is locked", None)
    # Had not even that been written, its silence would end it.
    assert run.heartbeat_at is not None
    assert services.remove(root.path) is True


@pytest.mark.fault("Several runs start at once")
@pytest.mark.django_db
def test_of_two_claims_at_once_one_gets_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rival claims the first row after this one saw that nothing is under way."""
    for name in ("a", "b"):
        IngestRun.objects.create(operation="start", path=f"/{name}", name=name, slot=name)
    real, rivals = endings.running, []

    def late() -> Any:
        monkeypatch.setattr(endings, "running", real)
        rivals.append(queue.claim())
        return IngestRun.objects.none()

    monkeypatch.setattr(endings, "running", late)
    assert queue.claim() is None
    states = IngestRun.objects.order_by("queued_at").values_list("state", "owner")
    assert list(states) == [("scanning", recovery.OWNER), ("queued", "")]
    assert [run and run.name for run in rivals] == ["a"]
