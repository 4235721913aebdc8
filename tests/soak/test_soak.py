"""Some rounds of the soak: one of each fault that this machine lets us arrange."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.soak import checks, repositories, rounds
from tests.soak.__main__ import table
from tests.soak.rounds import FAULTS, Round
from tests.soak.tally import HEAD, added
from tests.soak.world import World
from tests.support.ingested import write_files

pytestmark = pytest.mark.kill


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(tmp_path_factory.mktemp("soak"), seed=14) as world:
        yield world


@pytest.mark.parametrize("kind", FAULTS)
def test_after_a_fault_nothing_is_lost_and_nothing_untrue(world: World, kind: str) -> None:
    if kind not in rounds.kinds(world.disk.can_be_full):
        pytest.skip(f"not arranged on this machine: {kind}")
    record = Round(world, world.done, kind).play()
    world.record(record)
    assert record["violations"] == [], record["done"]


def test_a_loss_is_detected(world: World) -> None:
    round = Round(world, world.done, "nothing")
    round.prepare()
    assert rounds.chat(round) == "202"
    assert checks.lost_messages(world.server, world.sent) == []
    with closing(sqlite3.connect(world.data / "codeinfo.sqlite3")) as database, database:
        database.execute("DELETE FROM conversations_turn WHERE role = 'user'")
    assert checks.lost_messages(world.server, world.sent)
    world.sent.clear()


def test_an_index_unlike_a_clean_one_is_noticed(world: World) -> None:
    folder = world.roots[0]
    round = Round(world, world.done, "nothing")
    round.prepare()
    name, model = folder.name, rounds.MODEL
    body = {"path": str(folder), "name": name, "model": model}
    rounds_run = round.run(round.ask("POST", "/ingest/start", body))
    assert rounds_run == "202"
    # It is skipped if a repair after an earlier round has ingested the folder already.
    assert round.wait_for(round.runs[-1])["state"] in ("completed", "skipped")
    assert checks.unlike_a_clean_ingest(world.data, folder) == []
    write_files(folder, {"part0/more.py": "def more():\n    return 1\n"})
    assert checks.unlike_a_clean_ingest(world.data, folder)


def test_the_same_seed_gives_the_same_repositories(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for base in (one, two):
        repositories.make(base, Random(7))
    for path in one.rglob("part*/*"):
        assert path.read_bytes() == (two / path.relative_to(one)).read_bytes()


def test_the_table_counts_rounds_and_violations() -> None:
    records = [
        {"kind": "disk full", "violations": []},
        {"kind": "disk full", "violations": ["lost"]},
        {"kind": "nothing", "violations": []},
    ]
    assert table(records).splitlines()[2:] == [
        "| disk full | 2 | 1 |",
        "| nothing | 1 | 0 |",
        "| all | 3 | 1 |",
    ]


def test_the_rounds_of_all_sessions_are_counted() -> None:
    one = {"kills": 2, "violations": [], "seconds": 100.0}
    first = added("Words.\n\n", ("2026-11-28", "8bc09cb4"), [one, one])
    assert first == (
        f"Words.\n\n{HEAD}"
        "| 2026-11-28 | 8bc09cb4 | 2 | 4 | 0 | 3 |\n"
        "| all | all | 2 | 4 | 0 | 3 |\n"
    )
    again = added(first, ("2026-11-28", "8bc09cb4"), [one | {"violations": ["lost"]}])
    assert again.endswith("| all | all | 3 | 6 | 1 | 5 |\n")
    other = added(again, ("2026-12-01", "22473dcd"), [one] * 1_000)
    assert other.splitlines()[-2:] == [
        "| 2026-12-01 | 22473dcd | 1,000 | 2,000 | 0 | 1,667 |",
        "| all | all | 1,003 | 2,006 | 1 | 1,672 |",
    ]
