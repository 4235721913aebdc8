"""A scrub: what has changed on the disk is noticed, told and repaired, although nobody reads it."""

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.core.config import config
from apps.core.data import folder_lock
from apps.core.system import programs
from apps.index import scrubbed
from apps.index.changes import DUE, check_due, scrub_due
from apps.index.grams import get_grams, reset_grams
from apps.index.mapped import files
from apps.index.mapped.opened import opened_roots
from apps.index.models import Root
from apps.index.texts import get_texts, reset_texts
from apps.ingest.runs import sweep
from apps.ingest.runs.job import RunCancelled
from apps.ingest.runs.scrub import Scrub
from apps.ingest.runs.submit import work_waiting
from apps.ingest.verification.outcome import compare_all
from apps.ingest.worker import loop, supervisor
from apps.ingest.worker.loop import Worker
from apps.site import health
from apps.site.checks.runner import CheckRunner
from tests.support.damage import many_files
from tests.support.ingested import SAMPLE, ingest, write_files
from tests.support.parts import spoil_part
from tests.support.verification import verify

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

SECONDS = 30
TURNS = 20
FAULT = pytest.mark.fault("A file of the index changes on the disk")
Config = Callable[..., None]


@pytest.fixture(autouse=True)
def mapped(index: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files are mapped as large ones are, and one turn of the worker follows the other at once."""
    monkeypatch.setattr(files, "MAPPED_BYTES", 0)
    monkeypatch.setattr(files, "CHECKED_BYTES", 0)
    monkeypatch.setattr(loop, "RECHECK_SECONDS", 0)
    monkeypatch.setattr(loop, "SWEEP_SECONDS", 0)
    monkeypatch.setattr(health, "runner", CheckRunner())
    monkeypatch.setattr(health, "LIMIT_SECONDS", 60)
    monkeypatch.setattr(health, "FRESH_SECONDS", 0)
    scrub_due.clear()
    (config().data_dir / "scrub.json").unlink(missing_ok=True)
    reset_texts()
    reset_grams()
    for name in ("texts", "grams"):
        shutil.rmtree(config().data_dir / name, ignore_errors=True)
    yield
    for event in DUE.values():
        event.clear()


@pytest.fixture
def ships(folder: Path) -> Root:
    return ingest(write_files(folder / "ships", many_files(30)), "ships")


@pytest.fixture
def lighthouse(folder: Path) -> Root:
    """Another one beside it."""
    return ingest(write_files(folder / "lighthouse", SAMPLE), "lighthouse")


@pytest.fixture
def worker() -> Worker:
    return Worker()


def post(client: Client, tool: str, **arguments: Any) -> Any:
    answer = client.post(f"/tools/{tool}", arguments, content_type="application/json").json()
    answer.pop("index", None)  # it has the time of the ingest
    return answer


def search(client: Client) -> Any:
    return post(client, "vector-search", query="sail_17")


def scrubbed_index(worker: Worker) -> None:
    """One scrub, and the check that follows it."""
    scrub_due.set()
    worker.turn()


def repaired(worker: Worker) -> None:
    """Until there is nothing left to do, as another process that has read nothing yet."""
    reset_texts()
    for _ in range(TURNS):
        worker.turn()
        if not (scrub_due.is_set() or check_due.is_set() or sweep.due.is_set()):
            return
    raise AssertionError("there is always something left to do")


def flip(path: Path) -> None:
    """Change a byte in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def first(folder: str, suffix: str) -> Path:
    return next((config().data_dir / folder).glob(f"*{suffix}"))


@FAULT
def test_a_changed_part_is_lost_until_its_folder_is_ingested_again(
    client: Client, ships: Root, lighthouse: Root, worker: Worker, configure: Config
) -> None:
    configure(ingest_repair="ask")
    before = search(client)
    spoil_part(ships)
    scrubbed_index(worker)
    answer = search(client)
    assert answer["degraded"] == "a part of the index is lost: ships"
    assert {match["repo"] for match in answer["results"]} == {"lighthouse"}
    assert Root.objects.get(name="lighthouse").damage == ""
    configure(ingest_repair="auto")
    check_due.set()
    repaired(worker)
    assert search(client) == before
    assert verify() == []


@FAULT
def test_a_changed_part_stays_lost_after_a_restart_and_is_whole_when_it_is_back(
    client: Client, ships: Root, worker: Worker, configure: Config
) -> None:
    configure(ingest_repair="ask")
    before = search(client)
    path = first("index", ".part")
    content = path.read_bytes()
    spoil_part(ships)
    scrubbed_index(worker)
    opened_roots.keep_only([])
    assert "The index cannot be read" in search(client)["message"]
    worker.turn()
    detail = client.get("/health").json()["parts"]["index"]["detail"]
    assert "ships: 30 of 30 passages of the index are missing" in detail
    path.write_bytes(content)
    scrubbed_index(worker)
    worker.turn()
    assert search(client) == before
    assert client.get("/health").json()["parts"]["index"]["state"] == "ok"


@FAULT
def test_changed_texts_are_told_and_written_again(
    client: Client, ships: Root, worker: Worker, configure: Config
) -> None:
    before = search(client)
    configure(ingest_repair="ask")
    flip(first("texts", ".zst"))
    reset_texts()
    scrubbed_index(worker)
    worker.turn()
    assert "the stored text of" in Root.objects.get(name="ships").damage
    configure(ingest_repair="auto")
    check_due.set()
    repaired(worker)
    assert search(client) == before
    assert Root.objects.get(name="ships").damage == ""
    assert verify() == []


@FAULT
def test_grep_finds_all_lines_again_after_its_n_grams_have_changed(
    client: Client, ships: Root, worker: Worker
) -> None:
    sweep.due.set()
    repaired(worker)
    before = post(client, "grep", pattern=r"sail_\d")
    path = first("grams", ".grams")
    with path.open("r+b") as file:
        # What its lists say: that no piece has any n-gram.
        file.seek(path.stat().st_size // 2)
        file.write(bytes(path.stat().st_size // 2))
    scrubbed_index(worker)
    repaired(worker)
    assert post(client, "grep", pattern=r"sail_\d") == before
    assert not get_grams().missing(get_texts().keys())


@FAULT
def test_what_a_reader_cannot_read_has_all_files_compared(
    client: Client, ships: Root, worker: Worker
) -> None:
    """Once: when the damage is known, readers of it ask for nothing more."""
    path = Path(ships.path)
    flip(first("texts", ".zst"))
    reset_texts()
    path.rename(path.with_name("away"))
    assert "the text of" in search(client)["degraded"]
    assert scrub_due.is_set()
    repaired(worker)
    assert "ships: " in client.get("/health").json()["parts"]["index"]["detail"]
    assert "the text of" in search(client)["degraded"]
    assert not scrub_due.is_set()


@FAULT
def test_a_comparison_finds_and_repairs_changed_n_grams_and_texts(ships: Root) -> None:
    flip(first("grams", ".grams"))
    flip(first("texts", ".zst"))
    reset_texts()
    found = compare_all()
    assert {difference.kind for difference in found.differences} == {
        "grams_damaged",
        "texts_missing",
    }
    assert compare_all(with_repair=True).is_whole
    reset_texts()
    reset_grams()
    assert verify() == []


def test_a_scrub_gives_way_and_continues_where_it_was(
    ships: Root, lighthouse: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []
    real = files.verify

    def counted(path: Path, check: Callable[[], None]) -> None:
        real(path, check)
        compared.append(path.name)

    monkeypatch.setattr(files, "verify", counted)

    def until_one_is_compared() -> None:
        if compared:
            raise RunCancelled

    scrub = Scrub()
    with pytest.raises(RunCancelled):
        scrub.run(until_one_is_compared)
    assert len(compared) == 1
    state = scrubbed.read()
    assert (state.finished_at, state.total > 0) == (0, True)
    assert "The index is being compared with its checksums: " in state.text
    scrub.run(lambda: None)
    assert sorted(compared) == sorted({*compared})
    assert len(compared) == 2
    assert scrubbed.read().total == 0


def test_health_tells_when_all_files_were_compared(
    client: Client, ships: Root, worker: Worker
) -> None:
    words = "compared with its checksums"
    detail = client.get("/health").json()["parts"]["index"]["detail"]
    assert detail == f"1 repository. The index was not {words} yet."
    scrubbed_index(worker)
    detail = client.get("/health").json()["parts"]["index"]["detail"]
    assert detail.startswith(f"1 repository. The index was {words} at 20")


@pytest.mark.parametrize("content", ["", "[]", '{"unknown": 1}', '"text"', "\0"])
def test_a_record_that_cannot_be_read_counts_as_none(content: str) -> None:
    (config().data_dir / "scrub.json").write_text(content)
    assert scrubbed.read() == scrubbed.Scrubbed()


@pytest.mark.parametrize(
    ("day", "expected"), [(0, [True, True, True]), (1e9, [True, False, False])]
)
def test_a_server_has_all_files_compared_after_its_start_and_when_a_day_is_over(
    ships: Root, monkeypatch: pytest.MonkeyPatch, day: float, expected: list[bool]
) -> None:
    turns: list[bool] = []
    seen = threading.Event()

    def refused(*args: Any, **options: Any) -> Any:
        raise OSError("No worker in a test.")

    def claim() -> None:
        """The first that a turn of the supervisor does."""
        turns.append(scrub_due.is_set())
        scrub_due.clear()
        if len(turns) == len(expected):
            seen.set()
        work_waiting.set()

    monkeypatch.setattr(supervisor, "DAY_SECONDS", day)
    monkeypatch.setattr(programs, "start", refused)
    monkeypatch.setattr(folder_lock, "claim", claim)
    server = supervisor.Supervisor()
    server.start()
    assert seen.wait(SECONDS)
    server.stop()
    assert turns[: len(expected)] == expected
    work_waiting.clear()
