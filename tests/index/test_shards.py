"""A large collection in several shards behaves as one."""

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import pytest
from django.test import Client

from apps.core.concurrency import ingest_throttle
from apps.embedding.static import MODEL_ID
from apps.embedding.types import Vectors
from apps.index.models import Root
from apps.index.vectors import aside, collections
from apps.index.vectors import store as store_module
from apps.index.vectors.chroma import open_embedded
from apps.index.vectors.collections import Added, Collections
from apps.index.vectors.store import VectorStore, get_store, reset_store
from apps.ingest.runs import integrity, sweep
from tests.support.ingested import ingest, run_ingest, write_files

pytestmark = pytest.mark.door

SHARD_ROWS = 40
DIMENSION = 8


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collections, "SHARD_ROWS", SHARD_ROWS)


@pytest.fixture
def verbs(folder: Path) -> Iterator[Collections]:
    """In this process, where a shard can be small."""
    with closing(Collections(open_embedded(folder), folder)) as made:
        yield made


def vectors_of(numbers: list[int]) -> Vectors:
    rows = [np.random.default_rng(number).standard_normal(DIMENSION) for number in numbers]
    units = [row / np.linalg.norm(row) for row in rows]
    return np.array(units, np.float32).reshape(len(rows), DIMENSION)


def ids_of(numbers: list[int]) -> list[str]:
    return [f"{number:04}" for number in numbers]


def added(verbs: Collections, *numbers: int, name: str = "kept") -> Added:
    chosen = list(numbers)
    return verbs.add(name, {"made": "here"}, ids_of(chosen), vectors_of(chosen))


def read_back(verbs: Collections) -> set[str]:
    """All ids, read in pages."""
    pages = (verbs.ids("kept", 7, offset) for offset in range(0, 1_000, 7))
    found = [each for page in pages for each in page]
    assert len(found) == len(set(found))
    return set(found)


@pytest.mark.parametrize("seed", range(4))
def test_it_has_what_was_added_and_not_deleted_whatever_the_order(
    verbs: Collections, seed: int
) -> None:
    chance, present = random.Random(seed), set[int]()
    for _ in range(40):
        some = chance.sample(range(200), chance.randint(1, 30))
        if chance.random() < 0.65:
            added(verbs, *some)
            present |= set(some)
        else:
            verbs.delete("kept", ids_of(some))
            present -= set(some)
        assert verbs.count("kept") == len(present)
    assert len(verbs.shards("kept")) > 2
    assert read_back(verbs) == set(ids_of(sorted(present)))
    existing, vectors = verbs.vectors("kept", ids_of(list(range(200))))
    assert set(existing) == set(ids_of(sorted(present)))
    expected = vectors_of([int(each) for each in existing])
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    for number in chance.sample(sorted(present), 5):
        (found, distance), *others = verbs.nearest("kept", vectors_of([number])[0], 10)
        assert found == f"{number:04}" and distance == pytest.approx(0, abs=1e-5)
        assert [each for _, each in others] == sorted(each for _, each in others)


def test_a_shard_takes_rows_until_it_is_full(verbs: Collections) -> None:
    assert added(verbs, *range(30)) == ("kept", True, False)
    assert added(verbs, *range(30, 60)) == ("kept", False, False)
    assert added(verbs, *range(60, 70)) == ("kept.2", False, True)
    # Rows that exist are nowhere added again, also if all shards are full.
    added(verbs, *range(70, 110))
    assert added(verbs, *range(50, 80)) == ("kept.2", False, False)
    assert verbs.count("kept") == 110 and verbs.shards("kept") == ["kept", "kept.2"]


def test_shards_are_no_collections_of_their_own(verbs: Collections) -> None:
    added(verbs, *range(60))
    added(verbs, *range(60, 70))
    assert verbs.names() == ["kept"]
    verbs.describe("kept", {"name": "k"})
    assert verbs.description("kept") == {"made": "here", "name": "k"}
    verbs.drop("kept")
    assert verbs.names() == [] and verbs.count("kept") == 0
    assert added(verbs, 1) == ("kept", True, False)
    assert verbs.shards("kept") == ["kept"] and verbs.count("kept") == 1


def test_another_process_finds_the_shards(folder: Path) -> None:
    with closing(Collections(open_embedded(folder), folder)) as first:
        added(first, *range(60))
        added(first, *range(60, 110))
        added(first, *range(110, 120))
    with closing(Collections(open_embedded(folder), folder)) as second:
        assert second.shards("kept") == ["kept", "kept.2", "kept.3"]
        assert second.count("kept") == 120
        assert added(second, 5, 70, 115, 200) == ("kept.3", False, False)
        assert second.count("kept") == 121


def test_a_server_has_no_shards(folder: Path) -> None:
    with closing(Collections(open_embedded(folder))) as server:
        added(server, *range(60))
        assert added(server, *range(60, 110)) == ("kept", False, False)
        assert server.shards("kept") == ["kept"] and server.count("kept") == 110


def test_the_files_of_all_shards_are_set_aside(folder: Path) -> None:
    with closing(Collections(open_embedded(folder), folder)) as verbs:
        for name in ("kept", "other"):
            added(verbs, *range(60), name=name)
            added(verbs, *range(60, 110), name=name)
    indexes = set(aside._index_folders(folder, ["kept"]))
    assert len(indexes) == 2
    assert not indexes & set(aside._index_folders(folder, ["other"]))


def test_what_was_read_of_a_full_shard_is_freed(
    verbs: Collections, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[int] = []
    monkeypatch.setattr(verbs, "free_memory", lambda: freed.append(store.count(root)))
    store, root = VectorStore(verbs, "test"), uuid4()
    for start in range(0, 120, 10):
        numbers = list(range(start, start + 10))
        store.add(root, MODEL_ID, ids_of(numbers), vectors_of(numbers))
    assert freed == [50, 90]
    freed.clear()
    reopened = VectorStore(verbs, "test")
    assert reopened.examine(root) == "" and freed == [120] * 3


def test_a_row_whose_write_was_cut_off_is_asked_of_chroma(verbs: Collections) -> None:
    """A process that was killed has written to Chroma's log, but not to its rows."""
    added(verbs, *range(10))
    database = verbs._database
    assert database and database.count("kept") == 10
    database._last_writes = dict.fromkeys(database._last_writes or (), 1_000)
    assert database.count("kept") is database.existing("kept", ["0001"]) is None
    assert verbs.count("kept") == 10 and read_back(verbs) == set(ids_of(list(range(10))))


# --- a root ---------------------------------------------------------------------------------------


@pytest.fixture
def sharded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    reset_store()

    def opened() -> VectorStore:
        (folder / "chroma").mkdir()
        verbs = Collections(open_embedded(folder / "chroma"), folder / "chroma")
        return VectorStore(verbs, "test")

    monkeypatch.setattr(store_module, "_open", opened)
    monkeypatch.setattr(ingest_throttle, "WRITE_SLICE", 25)
    yield
    reset_store()


def files(count: int) -> dict[str, str]:
    return {f"part{n}.py": f"def lantern_{n}():\n    return {n}\n" for n in range(count)}


def shards_of(root: Root) -> list[str]:
    store: VectorStore = get_store()
    return store._client.call(Collections.shards, store._name(UUID(str(root.store))))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("sharded")
def test_a_root_in_shards_is_searched_ingested_again_and_removed(
    folder: Path, client: Client, configure
) -> None:
    configure(retrieval_mode="vector")
    tree = write_files(folder / "tree", files(150))
    root = ingest(tree, "tree")
    assert len(shards_of(root)) > 2
    assert integrity.whole([root]) == [root]
    for number in (0, 75, 149):
        body = {"query": f"lantern_{number}", "limit": 3}
        answer = client.post("/tools/vector-search", body, content_type="application/json")
        assert answer.json()["results"][0]["relPath"] == f"part{number}.py"
    # An edit of a file in the first shard, and one that is taken back.
    for text in ("def harbour():\n    return 0\n", files(1)["part0.py"]):
        (tree / "part0.py").write_text(text)
        run_ingest(tree, "tree")
        root.refresh_from_db()
        sweep.sweep()
        assert get_store().count(root.store) == root.embedded == 150
        assert integrity.whole([root]) == [root]
    sweep.drop_root(root, all_now=True)
    assert get_store().collections() == set()
    assert not get_store()._client.call(Collections.names)
