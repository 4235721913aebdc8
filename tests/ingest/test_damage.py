"""Parts that are lost or broken are told, cost no other root anything, and come back."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.index.changes import check_due
from apps.index.mapped import lists, part
from apps.index.mapped.opened import opened_roots
from apps.index.models import IngestRun, Root
from apps.index.texts import get_texts, reset_texts
from apps.ingest import services
from apps.ingest.runs import integrity, submit
from apps.ingest.worker import loop
from apps.ingest.worker.loop import Worker
from apps.site import health
from apps.site.checks.parts import index_examined
from apps.site.checks.runner import CheckRunner
from tests.ingest.stages import Nth, hook
from tests.support.damage import many_files
from tests.support.ingested import SAMPLE, ingest, write_files
from tests.support.parts import lose_parts, parts_on_disk, spoil_part
from tests.support.verification import verify
from tests.support.working import tidy

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

Config = Callable[..., None]
Harm = Callable[[Root], None]
LOST = "30 of 30 passages of the index are missing"


@pytest.fixture(autouse=True)
def asking(index: None, configure: Config, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder is ingested again only if somebody asks for it."""
    monkeypatch.setattr(health, "runner", CheckRunner())
    monkeypatch.setattr(health, "LIMIT_SECONDS", 60)
    monkeypatch.setattr(health, "FRESH_SECONDS", 0)
    # A check follows the other at once.
    monkeypatch.setattr(loop, "RECHECK_SECONDS", 0)
    configure(ingest_repair="ask")
    check_due.clear()
    yield
    check_due.clear()


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


def harm(how: Harm, root: Root) -> None:
    root.refresh_from_db()
    opened_roots.keep_only([])
    how(root)


def ask(client: Client, query: str) -> Any:
    body = json.dumps({"query": query})
    return client.post("/tools/vector-search", body, content_type="application/json").json()


def damages() -> dict[str, str]:
    return dict(Root.objects.values_list("name", "damage"))


@pytest.mark.fault("A part of the index is lost")
@pytest.mark.parametrize(
    ("how", "repair"), [(lose_parts, "ask"), (lose_parts, "auto"), (spoil_part, "ask")]
)
def test_a_lost_part_is_told_and_a_run_brings_it_back(
    client: Client,
    ships: Root,
    lighthouse: Root,
    worker: Worker,
    configure: Config,
    how: Harm,
    repair: str,
) -> None:
    configure(ingest_repair=repair)
    harm(how, ships)
    answer = ask(client, "backoff delay sail_17")
    assert answer["degraded"] == "a part of the index is lost: ships"
    assert {match["repo"] for match in answer["results"]} == {"lighthouse"}
    assert check_due.is_set()
    tidy(worker)
    if repair == "ask":
        assert damages() == {"ships": LOST, "lighthouse": ""}
        # Nothing was queued: it waits to be asked.
        assert not IngestRun.objects.live().exists()
        (row,) = (
            each for each in client.get("/ingest/roots").json()["roots"] if each["name"] == "ships"
        )
        assert row["damage"] == LOST
        for page in ("/ingest", "/"):
            assert LOST in client.get(page).content.decode()
        assert f"ships: {LOST}" in client.get("/health").content.decode()
        submit.queue_reembeds([ships.id])
        tidy(worker)
    assert damages() == {"ships": "", "lighthouse": ""}
    answer = ask(client, "sail_17")
    assert "degraded" not in answer
    assert answer["results"][0]["relPath"] == "ship_17.py"
    assert verify(source=True) == []
    kinds = IngestRun.objects.filter(path=ships.path).order_by("queued_at")
    assert [run.operation for run in kinds] == ["start", "reembed"]


@pytest.mark.fault("A part of the index is lost")
def test_a_repository_whose_name_lists_others_is_checked(client: Client, folder: Path) -> None:
    root = ingest(write_files(folder / "ships", many_files(30)), "a, the text of 2: b; c")
    harm(lose_parts, root)
    assert "index cannot be read" in ask(client, "sail_17")["message"]
    ingest(write_files(folder / "lighthouse", SAMPLE), "lighthouse")
    check_due.clear()
    assert "is lost: a, the text of 2: b; c" in ask(client, "sail_17")["degraded"]
    assert check_due.is_set()


def told_of_texts(client: Client, worker: Worker) -> str:
    """What all doors tell of the only repository, which is damaged."""
    check_due.set()
    tidy(worker)
    (damage,) = damages().values()
    shown = f"{damage[0].upper()}{damage[1:]}"
    assert shown in client.get("/ingest").content.decode()
    assert damage in client.get("/").content.decode()
    for detail in (
        client.get("/health").json()["parts"]["index"]["detail"],
        index_examined().detail,
    ):
        assert detail == f"ships: {damage}."
    return damage


@pytest.mark.fault("Texts are lost")
def test_texts_are_told_as_readable_or_not_as_look_ups_find_them(
    client: Client, folder: Path, worker: Worker
) -> None:
    same = "def sail(wind):\n    return wind\n"
    files = {"a.py": same, "b.py": same, "c.py": "def anchor():\n    return 1\n"}
    source = write_files(folder / "ships", files)
    ingest(source, "ships")
    before = ask(client, "sail wind anchor")
    get_texts().close()
    shutil.rmtree(config().data_dir / "texts")
    assert ask(client, "sail wind anchor") == before
    missing = "the stored text of 3 of 3 files is missing"
    assert told_of_texts(client, worker) == f"{missing}: it is read from the folder"
    for name in ("a.py", "b.py"):
        (source / name).write_text("BOATS = 4\n")
    assert ask(client, "sail wind anchor")["degraded"] == "the text of 2 passages is missing: ships"
    expected = f"{missing}: of 2 it cannot be read from the folder"
    assert told_of_texts(client, worker) == expected
    (source / "c.py").unlink()
    assert told_of_texts(client, worker) == f"{missing}: it cannot be read from the folder"


@pytest.mark.fault("Texts are lost")
def test_health_is_not_well_from_the_moment_an_answer_lacks_a_text(
    client: Client, ships: Root, worker: Worker, folder: Path
) -> None:
    tidy(worker)
    (segment,) = (config().data_dir / "texts").glob("*.zst")
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    reset_texts()
    Path(ships.path).rename(folder / "away")

    def told() -> Any:
        return client.get("/health").json()["parts"]["index"]

    assert told()["state"] == "ok"
    assert "the text of" in ask(client, "sail_17")["degraded"]
    assert (told()["state"], told()["word"]) == ("warn", "Being checked")
    worker.turn()
    assert told()["state"] == "bad"
    missing = "the stored text of 30 of 30 files is missing: it cannot be read from the folder"
    assert told()["detail"] == f"ships: {missing}."


@pytest.mark.fault("A part of the index is lost")
def test_a_repair_that_fails_is_not_tried_again_by_itself(
    ships: Root, worker: Worker, configure: Config
) -> None:
    configure(ingest_repair="auto")
    harm(lose_parts, ships)
    os.rename(ships.path, f"{ships.path}.away")
    for _ in range(3):
        check_due.set()
        tidy(worker)
    ships.refresh_from_db()
    assert (ships.damage, ships.last_state) == (LOST, "error")
    assert IngestRun.objects.count() == 2
    # The server was stopped in the middle: that says nothing about the repair.
    os.rename(f"{ships.path}.away", ships.path)
    IngestRun.objects.filter(state="error").update(last_error="Interrupted")
    check_due.set()
    tidy(worker)
    ships.refresh_from_db()
    assert (ships.damage, ships.last_state) == ("", "completed")


def test_a_repair_that_is_interrupted_twice_is_left_alone(ships: Root, configure: Config) -> None:
    configure(ingest_repair="auto")
    harm(lose_parts, ships)
    queued = []
    for _ in range(4):
        integrity.check()
        queued.append(IngestRun.objects.live().count())
        # The server went down with it.
        IngestRun.objects.live().update(state="error", last_error="Interrupted", slot=None)
    assert queued == [1, 1, 0, 0]


@pytest.mark.fault("A part of the index is lost")
@pytest.mark.parametrize("how", [lose_parts, spoil_part])
def test_a_damaged_root_can_be_removed(
    client: Client, ships: Root, worker: Worker, how: Harm, monkeypatch: pytest.MonkeyPatch
) -> None:
    harm(how, ships)
    answer = client.post(f"/ingest/remove/{ships.path}", "{}", content_type="application/json")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert client.get("/ingest/roots").json()["roots"] == []
    # Nobody writes what cannot be read.
    monkeypatch.setattr("apps.index.mapped.collecting.MERGE_SECONDS", -1)
    worker.turn()
    assert not parts_on_disk()


def test_what_comes_back_is_no_damage_any_more(ships: Root, worker: Worker, folder: Path) -> None:
    path = part.path_of(lists.folder(), ships.parts[0]["name"])
    path.rename(folder / "elsewhere")
    tidy(worker)
    assert damages() == {"ships": LOST}
    (folder / "elsewhere").rename(path)
    check_due.set()
    tidy(worker)
    assert damages() == {"ships": ""}


@pytest.mark.fault("A part of the index is lost")
def test_parts_that_go_in_mid_run_are_missed_after_it(
    ships: Root, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidy(worker)
    write_files(Path(ships.path), {"ship_1.py": "def anchor():\n    return 1\n"})
    lost = Nth(1, lambda: lose_parts(ships))
    hook("embedding", lost, monkeypatch.setattr)
    run = services.reembed(ships.path)
    tidy(worker)
    run.refresh_from_db()
    assert lost.happened
    assert (run.state, run.error_code) == ("error", "INDEX_DAMAGED")
    assert damages() == {"ships": LOST}


@pytest.mark.fault("A part of the index is lost")
def test_files_that_cannot_be_looked_at_now_are_no_damage(
    ships: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where too many files are open."""

    def refused(*args: object) -> None:
        raise OSError(24, "Too many open files")

    opened_roots.keep_only([])
    monkeypatch.setattr(part, "read", refused)
    with pytest.raises(Unavailable, match="Too many open files"):
        integrity.check()
    assert damages() == {"ships": ""}
