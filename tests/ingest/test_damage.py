"""Vectors that are lost or broken are told, cost no other root anything, and come back."""

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.core.errors import Unavailable
from apps.index.changes import check_due
from apps.index.models import IngestRun, Root
from apps.index.vectors import chroma, guarded, process
from apps.index.vectors.collections import Collections
from apps.index.vectors.store import get_store, reset_store
from apps.ingest import services
from apps.ingest.runs import integrity, queue, sweep
from apps.ingest.verification import verify
from apps.site import health
from apps.site.checks.runner import CheckRunner
from tests.ingest.stages import Nth, hook
from tests.support import damage
from tests.support.damage import Harm
from tests.support.index import Server
from tests.support.ingested import SAMPLE, ingest, run_ingest, write_files
from tests.support.parts import lose_parts

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

Config = Callable[..., None]
HARMS = (*damage.OF_THE_STORE, *damage.OF_A_ROOT)


@pytest.fixture
def data(configure: Config, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The data folder of an installation of its own, which asks before it ingests again."""
    monkeypatch.setattr(health, "runner", CheckRunner())
    monkeypatch.setattr(health, "LIMIT_SECONDS", 60)
    monkeypatch.setattr(health, "FRESH_SECONDS", 0)
    reset_store()
    configure(data_dir=folder / "data", ingest_repair="ask")
    yield folder / "data"
    reset_store()


@pytest.fixture
def ships(data: Path, folder: Path) -> Root:
    """A root whose vectors are in index files."""
    return ingest(write_files(folder / "ships", damage.many_files()), "ships")


@pytest.fixture
def lighthouse(data: Path, folder: Path) -> Root:
    """A small one beside it."""
    return ingest(write_files(folder / "lighthouse", SAMPLE), "lighthouse")


@pytest.fixture
def worker() -> queue.Worker:
    return queue.Worker()


def work(worker: queue.Worker) -> None:
    """Until there is nothing left to do."""
    while worker.turn():
        pass


def harm(how: Harm, data: Path, root: Root, *, running: bool = False) -> None:
    if not running:
        reset_store()
    how(data / "chroma", root.id)


def ask(client: Client, query: str, **options: Any) -> Any:
    body = json.dumps({"query": query, **options})
    return client.post("/tools/vector-search", body, content_type="application/json")


def damages() -> dict[str, bool]:
    return {root.name: bool(root.damage) for root in Root.objects.all()}


def set_asides(data: Path) -> list[Path]:
    return sorted(data.glob("chroma.broken-*"))


def test_a_vector_that_cannot_be_read_is_found_by_who_reads_it_and_comes_back(
    data: Path, ships: Root, worker: queue.Worker, configure: Config
) -> None:
    harm(damage.vector_flipped, data, ships)
    work(worker)
    assert damages() == {"ships": False}
    (found,) = verify()
    assert "chunks whose vector is none, 1: " in found.detail
    configure(data_dir=data, ingest_repair="auto")
    work(queue.Worker())
    assert damages() == {"ships": False}
    assert len(set_asides(data)) == 1
    assert verify(source=True) == []


@pytest.mark.fault("Vectors are lost")
@pytest.mark.parametrize("how", HARMS)
def test_what_is_lost_is_told_parts_answer_and_a_run_brings_it_back(
    client: Client, data: Path, ships: Root, lighthouse: Root, worker: queue.Worker, how: Harm
) -> None:
    whole = how not in damage.OF_THE_STORE
    harm(how, data, ships)
    work(worker)
    assert damages() == {"ships": True, "lighthouse": not whole}
    # Searches do not read Chroma.
    answer = ask(client, "sail_17").json()
    assert answer["results"][0]["relPath"] == "ship_17.py"
    assert "degraded" not in answer
    reported = client.get("/health").json()
    assert reported["degraded"] == ["chroma"] and reported["parts"]["chroma"]["state"] == "bad"
    assert "ships: 450 of 450 vectors are missing" in reported["parts"]["chroma"]["detail"]
    for page in ("/ingest", "/"):
        assert "450 of 450 vectors are missing" in client.get(page).content.decode()
    # Nothing was queued: it waits to be asked.
    assert not IngestRun.objects.live().exists()
    for root in (ships, lighthouse):
        services.queue_reembeds([root.id])
    work(worker)
    assert damages() == {"ships": False, "lighthouse": False}
    assert get_store().count(ships.id) == ships.embedded
    assert "degraded" not in ask(client, "sail_17").json()
    assert client.get("/health").json()["parts"]["chroma"]["state"] == "ok"


@pytest.mark.fault("Vectors are lost")
@pytest.mark.parametrize("how", [damage.chroma_deleted, damage.database_deleted])
def test_files_that_go_while_they_are_open_are_missed(
    data: Path, ships: Root, worker: queue.Worker, how: Harm
) -> None:
    work(worker)
    harm(how, data, ships, running=True)
    with pytest.raises(Unavailable, match="removed or replaced"):
        get_store().count(ships.id)
    # Its child is not asked any more, though it has the files still open.
    with pytest.raises(Unavailable):
        get_store().collections()
    worker._check_at = 0
    work(worker)
    ships.refresh_from_db()
    assert ships.damage == "450 of 450 vectors are missing"
    with pytest.raises(Unavailable, match="Another process"):
        chroma.FolderLock(data / "chroma")


@pytest.mark.fault("A part of the index is lost")
@pytest.mark.parametrize("repair", ["ask", "auto"])
def test_a_lost_part_is_told_and_a_run_brings_it_back(
    client: Client,
    data: Path,
    ships: Root,
    lighthouse: Root,
    worker: queue.Worker,
    configure: Config,
    repair: str,
) -> None:
    configure(ingest_repair=repair)
    lose_parts(ships)
    answer = ask(client, "backoff delay sail_17").json()
    assert answer["degraded"] == "a part of the index is lost: ships"
    assert {match["repo"] for match in answer["results"]} == {"lighthouse"}
    assert check_due.is_set()
    work(worker)
    if repair == "ask":
        assert damages() == {"ships": True, "lighthouse": False}
        for page in ("/ingest", "/"):
            assert "450 of 450 chunks of the index are missing" in client.get(page).content.decode()
        services.queue_reembeds([ships.id])
        work(worker)
    assert damages() == {"ships": False, "lighthouse": False}
    answer = ask(client, "sail_17").json()
    assert "degraded" not in answer
    assert answer["results"][0]["relPath"] == "ship_17.py"
    assert verify(source=True) == []


@pytest.mark.fault("Vectors are lost")
def test_half_of_a_collection_is_missed(
    client: Client, data: Path, ships: Root, worker: queue.Worker
) -> None:
    store = get_store()
    half = sorted(store.ids(ships.id))[:225]
    store._client.call(Collections.delete, store._name(ships.id), half)
    work(worker)
    (row,) = client.get("/ingest/roots").json()["roots"]
    assert row["damage"] == "225 of 450 vectors are missing"


@pytest.mark.fault("Vectors are lost")
def test_mode_vector_says_what_is_missing_instead_of_nothing(
    client: Client,
    data: Path,
    ships: Root,
    lighthouse: Root,
    worker: queue.Worker,
    configure: Config,
) -> None:
    configure(retrieval_mode="vector")
    harm(damage.vectors_flipped, data, ships)
    # Before anything has looked at it, the other one answers all the same.
    answer = ask(client, "backoff delay").json()
    assert {each["repo"] for each in answer["results"]} == {"lighthouse"}
    assert answer["degraded"] == "no answer from ships"
    work(worker)
    answer = ask(client, "sail", repository="ships")
    assert (answer.status_code, answer.json()["error"]) == (502, "CHROMA_UNAVAILABLE")
    assert "450 of 450 vectors are missing" in answer.json()["message"]


@pytest.mark.fault("Vectors are damaged")
@pytest.mark.parametrize("how", damage.OF_A_ROOT[2:])
def test_one_broken_root_costs_the_others_nothing(
    client: Client, data: Path, ships: Root, lighthouse: Root, configure: Config, how: Harm
) -> None:
    """While nobody has set it aside yet."""
    configure(retrieval_mode="vector")
    harm(how, data, ships)
    for _ in range(2):
        answer = ask(client, "backoff delay sail_17").json()
        assert answer["degraded"] == "no answer from ships"
        assert {each["repo"] for each in answer["results"]} == {"lighthouse"}
    assert check_due.is_set()


@pytest.mark.fault("Vectors are lost")
@pytest.mark.parametrize(
    "how", [damage.chroma_deleted, damage.database_overwritten, damage.vectors_flipped]
)
def test_it_is_ingested_again_by_itself_once(
    data: Path, ships: Root, worker: queue.Worker, configure: Config, how: Harm
) -> None:
    configure(ingest_repair="auto")
    harm(how, data, ships)
    work(worker)
    ships.refresh_from_db()
    assert (ships.damage, ships.generation) == ("", 2)
    assert get_store().count(ships.id) == ships.embedded == 450
    assert integrity.state_of(ships).damage(ships) == ""
    assert [run.operation for run in IngestRun.objects.order_by("queued_at")] == [
        "start",
        "reembed",
    ]


@pytest.mark.fault("Vectors are damaged")
def test_what_is_broken_is_kept_and_only_the_newest_two_of_it(
    data: Path, ships: Root, worker: queue.Worker, configure: Config
) -> None:
    configure(ingest_repair="auto")
    for how in (damage.vectors_flipped, damage.database_truncated, damage.header_flipped):
        harm(how, data, ships)
        check_due.set()
        worker._check_at = 0
        work(worker)
    first, second = set_asides(data)
    assert {stat.S_IMODE(each.stat().st_mode) for each in (first, second)} == {0o700}
    assert (first / "chroma.sqlite3").exists()
    (index,) = second.iterdir()
    assert (index / "data_level0.bin").exists()


@pytest.mark.fault("Vectors are lost")
def test_a_repair_that_fails_is_not_tried_again_by_itself(
    data: Path, ships: Root, worker: queue.Worker, configure: Config
) -> None:
    configure(ingest_repair="auto")
    harm(damage.chroma_deleted, data, ships)
    os.rename(ships.path, f"{ships.path}.away")
    for _ in range(3):
        check_due.set()
        worker._check_at = 0
        work(worker)
    ships.refresh_from_db()
    assert (ships.damage, ships.last_state) == ("450 of 450 vectors are missing", "error")
    assert IngestRun.objects.count() == 2
    # The server was stopped in the middle: that says nothing about the repair.
    os.rename(f"{ships.path}.away", ships.path)
    IngestRun.objects.filter(state="error").update(last_error="Interrupted")
    check_due.set()
    worker._check_at = 0
    work(worker)
    ships.refresh_from_db()
    assert (ships.damage, ships.last_state) == ("", "completed")


@pytest.mark.fault("Vectors are damaged")
def test_an_ingest_of_a_broken_root_mends_it_though_nobody_had_noticed(
    data: Path, ships: Root
) -> None:
    for generation, how in enumerate((damage.index_deleted, damage.vectors_flipped), 2):
        harm(how, data, ships)
        run = run_ingest(Path(ships.path), "ships")
        assert (run.state, run.embedded) == ("completed", 450)
        ships.refresh_from_db()
        assert (ships.damage, ships.generation) == ("", generation)
        assert get_store().examine(ships.id) == ""


@pytest.mark.fault("Vectors are damaged")
@pytest.mark.parametrize(
    "how", [damage.database_overwritten, damage.vectors_flipped, damage.header_flipped]
)
def test_a_broken_root_can_be_removed(client: Client, data: Path, ships: Root, how: Harm) -> None:
    harm(how, data, ships)
    answer = client.post(f"/ingest/remove/{ships.path}", "{}", content_type="application/json")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert client.get("/ingest/roots").json()["roots"] == []
    queue.Worker().turn()
    assert get_store().collections() == set()


# --- what is no damage ----------------------------------------------------------------------------


class Failing:
    """A client whose calls fail so, one after the other, and then no more."""

    def __init__(self, *errors: Unavailable) -> None:
        self.errors = list(errors)

    def call(self, *call: Any, **options: Any) -> Any:
        if self.errors:
            raise self.errors.pop(0)
        return ["name"] if call[0] is Collections.shards else None

    def restart(self) -> None: ...
    def free_memory(self) -> None: ...

    def diagnose(self, names: Any, error: Unavailable) -> None: ...


def examined(*errors: Unavailable) -> str:
    client: Any = Failing(*errors)
    client.close = client.set_aside = None
    return guarded.Guarded(client).examine("name")


@pytest.mark.fault("Chroma is unavailable")
def test_only_what_fails_twice_by_itself_counts_as_broken() -> None:
    lost = Unavailable("Chroma's process was lost (killed): try again")
    crashed, odd = chroma.crashed("SIGSEGV"), chroma.unavailable("Chroma failed: no index")
    for errors in ([], [lost], [crashed], [odd], [lost, crashed], [lost, lost]):
        assert examined(*errors) == "", errors
    for errors in ([crashed, crashed], [odd, odd], [crashed, lost, odd]):
        assert examined(*errors) == errors[-1].message
    with pytest.raises(Unavailable, match="lost"):
        examined(lost, lost, lost)


@pytest.mark.fault("Chroma is unavailable")
def test_files_that_cannot_be_read_are_no_damage(data: Path, ships: Root) -> None:
    reset_store()
    header = damage.index_folder(data / "chroma", ships.id) / "header.bin"
    header.rename(header.with_name("elsewhere"))
    header.mkdir()  # root, too, cannot read that
    with pytest.raises(Unavailable, match="files cannot be read"):
        integrity.check()
    ships.refresh_from_db()
    assert ships.damage == "" and set_asides(data) == []


@pytest.mark.fault("Chroma is unavailable")
def test_nothing_is_set_aside_while_the_disk_is_full(
    data: Path, ships: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    harm(damage.header_flipped, data, ships)
    usage = shutil.disk_usage(data)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(Unavailable, match="is full"):
        integrity.check()
    assert set_asides(data) == []


@pytest.mark.fault("Chroma is unavailable")
@pytest.mark.parametrize("code", [5, 8, 10, 13, 14])
def test_a_lock_a_full_disk_and_a_lack_of_rights_are_no_damage(code: int) -> None:
    error = Unavailable(f"Chroma failed: error returned from database: (code: {code}) no")
    assert not guarded._is_content_error(error)
    assert not process.may_be_malformed(error)


@pytest.mark.fault("Chroma is unavailable")
def test_what_is_broken_on_a_server_is_told_and_left_as_it_is(
    data: Path,
    folder: Path,
    server: Server,
    worker: queue.Worker,
    configure: Config,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure(chroma_url=server.url, ingest_repair="auto")
    lighthouse = ingest(write_files(folder / "lighthouse", SAMPLE), "lighthouse")

    def fails(self: guarded.Guarded, name: str) -> None:
        raise chroma.unavailable("Chroma failed: its index is odd")

    reset_store()  # of what it has written itself, it probes nothing
    with monkeypatch.context() as patch:
        patch.setattr(guarded.Guarded, "_probe", fails)
        work(worker)
    lighthouse.refresh_from_db()
    assert lighthouse.damage == "Its vectors cannot be read: Chroma failed: its index is odd"
    assert get_store().count(lighthouse.id) == lighthouse.embedded
    assert IngestRun.objects.count() == 1
    # It is looked at again while it is damaged.
    worker._check_at = worker._damaged_at = 0
    work(worker)
    assert damages() == {"lighthouse": False}


@pytest.mark.fault("Chroma is unavailable")
def test_what_comes_back_is_no_damage_any_more(
    data: Path, ships: Root, worker: queue.Worker
) -> None:
    reset_store()
    (data / "chroma").rename(data / "elsewhere")
    work(worker)
    assert damages() == {"ships": True}
    reset_store()
    shutil.rmtree(data / "chroma")
    (data / "elsewhere").rename(data / "chroma")
    check_due.set()
    worker._check_at = 0
    work(worker)
    assert damages() == {"ships": False}
    assert sweep.due.is_set() is False


def test_a_run_that_replaces_the_store_has_the_other_roots_looked_at(
    data: Path, ships: Root, lighthouse: Root, worker: queue.Worker
) -> None:
    work(worker)
    damage.chroma_deleted(data / "chroma", ships.id)
    services.reembed(ships.path)
    work(worker)
    work(queue.Worker())
    assert damages() == {"ships": False, "lighthouse": True}


def test_a_root_that_cannot_be_judged_hides_no_other(
    data: Path, ships: Root, lighthouse: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    get_store().drop(lighthouse.id)
    diagnose = integrity.state_of

    def busy(root: Root) -> integrity.State:
        if root.id == ships.id:
            raise chroma.unavailable("Chroma's files cannot be read: Permission denied")
        return diagnose(root)

    monkeypatch.setattr(integrity, "state_of", busy)
    with pytest.raises(Unavailable, match="Permission denied"):
        integrity.check()
    assert damages() == {"ships": False, "lighthouse": True}


def test_a_sound_store_that_is_put_back_while_it_runs_is_used(
    data: Path, ships: Root, folder: Path, worker: queue.Worker
) -> None:
    reset_store()
    shutil.copytree(data / "chroma", folder / "kept")
    assert get_store().count(ships.id) == ships.embedded
    shutil.rmtree(data / "chroma")
    shutil.copytree(folder / "kept", data / "chroma")
    assert get_store().count(ships.id) == ships.embedded
    work(worker)
    assert set_asides(data) == []
    assert damages() == {"ships": False}


def test_a_repair_that_is_interrupted_twice_is_left_alone(
    data: Path, ships: Root, configure: Config
) -> None:
    configure(ingest_repair="auto")
    get_store().drop(ships.id)
    queued = []
    for _ in range(4):
        integrity.check()
        queued.append(IngestRun.objects.live().count())
        # The server went down with it.
        IngestRun.objects.live().update(state="error", last_error="Interrupted", slot=None)
    assert queued == [1, 1, 0, 0]


def test_files_that_cannot_be_looked_at_are_an_answer_of_their_own(
    client: Client, data: Path, ships: Root, monkeypatch: pytest.MonkeyPatch, configure: Config
) -> None:
    def denied(folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    get_store()
    monkeypatch.setattr(process, "_file", denied)
    assert "degraded" not in ask(client, "sail_17").json()
    configure(retrieval_mode="vector")
    answer = ask(client, "sail_17")
    assert (answer.status_code, answer.json()["error"]) == (502, "CHROMA_UNAVAILABLE")


def test_a_store_without_roots_that_was_taken_away_is_replaced(
    data: Path, lighthouse: Root, worker: queue.Worker
) -> None:
    work(worker)
    damage.chroma_deleted(data / "chroma", lighthouse.id)
    with pytest.raises(Unavailable):
        services.remove(lighthouse.path)
        get_store().collections()
    work(queue.Worker())
    assert get_store().collections() == set()


@pytest.mark.fault("Vectors are damaged")
@pytest.mark.parametrize("how", [damage.table_overwritten, damage.database_overwritten])
def test_a_run_whose_vectors_break_starts_over(
    data: Path, folder: Path, ships: Root, monkeypatch: pytest.MonkeyPatch, how: Harm
) -> None:
    write_files(folder / "ships", {"ship_1.py": "def anchor():\n    return 1\n"})

    def harm_and_reopen() -> None:
        harm(how, data, ships, running=True)
        get_store()._client._client.restart()

    broken = Nth(1, harm_and_reopen)
    hook("storing", broken, monkeypatch.setattr)
    run = run_ingest(folder / "ships", "ships")
    assert broken.happened
    assert (run.state, run.last_error, run.files, run.embedded) == ("completed", "", 450, 450)
    assert damages() == {"ships": False}
    assert len(set_asides(data)) == 1
    assert verify(source=True) == []


def test_a_first_run_whose_vectors_break_starts_over(
    data: Path, folder: Path, ships: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    boats = write_files(folder / "boats", damage.many_files(1_000))
    monkeypatch.setattr("apps.ingest.runs.writer.STEP", 500)
    monkeypatch.setattr("apps.ingest.runs.batches.ROWS_PER_WRITE", 500)

    # A store of its own.
    monkeypatch.setattr("apps.ingest.runs.shared.find_store", lambda *arguments: None)

    def harm_and_reopen() -> None:
        damage.table_overwritten(data / "chroma", Root.objects.get(path=str(boats)).store)
        get_store()._client._client.restart()

    broken = Nth(3, harm_and_reopen)
    hook("storing", broken, monkeypatch.setattr)
    run = run_ingest(boats, "boats")
    assert broken.happened
    assert (run.state, run.last_error, run.embedded) == ("completed", "", 1_000)
    assert damages() == {"boats": False, "ships": False}
    assert verify(source=True) == []


def test_a_run_whose_store_fails_for_another_reason_ends_in_error(
    data: Path, folder: Path, ships: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(folder / "ships", {"ship_1.py": "def anchor():\n    return 1\n"})

    def fail() -> None:
        raise chroma.unavailable("Chroma failed: it is locked")

    hook("storing", Nth(1, fail), monkeypatch.setattr)
    run = run_ingest(folder / "ships", "ships")
    assert (run.state, run.last_error) == ("error", "Chroma failed: it is locked")
    assert set_asides(data) == []


@pytest.mark.fault("Vectors are lost")
def test_vectors_that_go_in_mid_run_are_missed_after_it(
    data: Path, folder: Path, ships: Root, worker: queue.Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(worker)
    write_files(folder / "ships", {"ship_1.py": "def anchor():\n    return 1\n"})
    lost = Nth(1, lambda: get_store().drop(ships.id))
    hook("publishing", lost, monkeypatch.setattr)
    run = services.reembed(ships.path)
    worker._check_at = 0
    worker.turn()
    run.refresh_from_db()
    assert lost.happened
    assert run.state == "completed"
    worker._check_at = 0
    work(worker)
    assert damages() == {"ships": True}
