"""Vectors of chunks, found again and deleted, in the real embedded Chroma."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import pytest

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.embedding.static import MODEL_ID
from apps.embedding.types import Vectors
from apps.index.vectors import chroma
from apps.index.vectors import store as store_module
from apps.index.vectors.chroma import FolderLock, open_embedded
from apps.index.vectors.collections import Collections
from apps.index.vectors.store import VectorStore, claim_store, get_store, reset_store
from apps.ingest.runs.job import RunCancelled
from tests.support import damage

pytestmark = pytest.mark.door

MODEL = MODEL_ID
FIRST, SECOND = str(uuid4()), str(uuid4())


@pytest.fixture(scope="module", autouse=True)
def store_ends() -> Iterator[None]:
    yield
    reset_store()


@pytest.fixture
def store() -> VectorStore:
    return get_store()


@pytest.fixture
def root() -> Iterator[UUID]:
    root_id = uuid4()
    yield root_id
    get_store().drop(root_id)


def chunk(number: int, file: str = FIRST) -> str:
    """The id of a chunk."""
    return f"{file}:{number}"


def ids(numbers: Iterable[int], file: str = FIRST) -> list[str]:
    return [chunk(number, file) for number in numbers]


def random_vectors(count: int, dimension: int = 16) -> Vectors:
    return np.random.default_rng(7).standard_normal((count, dimension)).astype(np.float32)


def fill(store: VectorStore, root: UUID, count: int, file: str = FIRST) -> Vectors:
    vectors = random_vectors(count)
    store.add(root, MODEL, ids(range(count), file), vectors)
    return vectors


def chroma_folder() -> Path:
    return config().data_dir / "chroma"


def index_folders() -> set[str]:
    return {entry.name for entry in chroma_folder().iterdir() if entry.is_dir()}


def test_an_id_is_returned_as_it_was_added(store: VectorStore, root: UUID) -> None:
    odd = f"{FIRST}:src/größe 日本語\t'\".py:0"
    assert store.add(root, MODEL, [odd, chunk(1)], random_vectors(2)) == []
    assert store.nearest(root, random_vectors(2)[0], 1) == [(odd, pytest.approx(0, abs=1e-6))]
    assert store.ids(root) == {odd, chunk(1)}


def test_distances_are_those_of_unit_vectors(store: VectorStore, root: UUID) -> None:
    vectors = np.array([[9, 0], [0, 0.01], [-3, 0], [5, 5]], np.float32)
    store.add(root, MODEL, ids(range(4)), vectors)
    found = store.nearest(root, np.array([1e6, 0], np.float32), 4)
    assert [each for each, _ in found] == ids([0, 3, 1, 2])
    expected = [0, 2 - 2 * 0.5**0.5, 2, 4]
    assert [distance for _, distance in found] == pytest.approx(expected, abs=1e-5)


def test_a_vector_without_direction_is_refused_by_its_id(store: VectorStore, root: UUID) -> None:
    vectors = random_vectors(5)
    vectors[1] = 0
    vectors[2, 3] = np.nan
    vectors[3, 3] = np.inf
    assert store.add(root, MODEL, ids(range(5)), vectors) == ids([1, 2, 3])
    assert store.ids(root) == {chunk(0), chunk(4)}
    assert store.nearest(root, vectors[1], 5) == []
    assert store.nearest(root, vectors[2], 5) == []


def test_the_true_nearest_come_first(store: VectorStore, root: UUID) -> None:
    vectors = fill(store, root, 700)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    question = random_vectors(701)[-1]
    found = store.nearest(root, question, 10)
    distances = [distance for _, distance in found]
    assert distances == sorted(distances)
    nearest = np.argsort(-(units @ question))[:10]
    assert [each for each, _ in found] == ids(nearest)
    assert len(store.nearest(root, question, 10_000)) == 700


def test_the_nearest_do_not_depend_on_the_length_of_the_query(
    store: VectorStore, root: UUID
) -> None:
    vectors = fill(store, root, 300)
    found = store.nearest(root, vectors[3], 200)
    assert len(found) == 200
    assert store.nearest(root, vectors[3] * 7, 200) == [
        (each, pytest.approx(distance, abs=1e-6)) for each, distance in found
    ]
    assert store.nearest(root, vectors[3], 0) == []
    assert store.nearest(root, vectors[3] * 0, 5) == []


def test_an_audit_returns_the_rows_that_exist(store: VectorStore, root: UUID) -> None:
    vectors = fill(store, root, 30)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    existing, found = store.audit(root, [*ids((20, 4)), "nobody"])
    assert sorted(existing) == sorted(ids((20, 4)))
    expected = {chunk(number): units[number] for number in (20, 4)}
    for each, vector in zip(existing, found, strict=True):
        np.testing.assert_allclose(vector, expected[each], atol=1e-6)


def test_an_audit_of_no_ids_returns_no_rows(store: VectorStore, root: UUID) -> None:
    fill(store, root, 3)
    existing, found = store.audit(root, [])
    assert (existing, len(found)) == ([], 0)


def test_all_ids_are_read_in_portions(
    store: VectorStore, root: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, root, 1_203)
    monkeypatch.setattr(store_module, "READ_SLICE", 100)
    assert sorted(store.each_id(root)) == sorted(ids(range(1_203)))


def test_roots_do_not_see_each_other(store: VectorStore, root: UUID) -> None:
    other = uuid4()
    fill(store, root, 3)
    store.add(other, MODEL, [chunk(9)], random_vectors(1))
    assert len(store.nearest(other, random_vectors(1)[0], 5)) == 1
    assert {root, other} <= store.collections()
    store.drop(other)
    assert other not in store.collections()
    assert store.count(root) == 3


@pytest.mark.fault("A run is cancelled")
def test_many_rows_are_dropped_in_slices_and_the_rest_when_it_is_asked_for_again(
    store: VectorStore, root: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MAX_DROPPED", 10)
    monkeypatch.setattr(store_module, "DROP_SLICE", 20)
    fill(store, root, 60)
    left = iter([None])

    def once() -> None:
        if next(left, "none") == "none":
            raise RunCancelled

    with pytest.raises(RunCancelled):
        store.drop(root, once)
    assert store.count(root) == 40
    store.drop(root)
    assert root not in store.collections()


def test_an_unknown_root_holds_nothing(store: VectorStore) -> None:
    nobody = uuid4()
    assert store.nearest(nobody, random_vectors(1)[0], 5) == []
    assert store.audit(nobody, ["a"])[0] == []
    assert store.ids(nobody) == set()
    assert store.count(nobody) == 0
    store.delete(nobody, ["a"])
    store.drop(nobody)
    assert nobody not in store.collections()


def test_nothing_added_makes_no_collection(store: VectorStore, root: UUID) -> None:
    store.add(root, MODEL, [], np.zeros((0, 16), np.float32))
    assert root not in store.collections()


def test_deleting_takes_all_ids_however_many_and_no_others(store: VectorStore, root: UUID) -> None:
    fill(store, root, 1_200, FIRST)
    fill(store, root, 30, SECOND)
    store.delete(root, [*ids(range(1_197)), "nobody"])
    assert store.ids(root) == {*ids(range(1_197, 1_200)), *ids(range(30), SECOND)}
    store.delete(root, ids(range(1_197)))
    store.delete(root, [])
    assert store.count(root) == 33


def test_a_deletion_that_is_cancelled_leaves_the_rest(store: VectorStore, root: UUID) -> None:
    fill(store, root, 300)
    left = iter([None])

    def once() -> None:
        if next(left, "none") == "none":
            raise RunCancelled

    with pytest.raises(RunCancelled):
        store.delete(root, ids(range(300)), once)
    assert 0 < store.count(root) < 300
    store.delete(root, ids(range(300)))
    assert store.count(root) == 0


def test_adding_again_changes_nothing(store: VectorStore, root: UUID) -> None:
    fill(store, root, 10)
    fill(store, root, 10)
    assert store.count(root) == 10


def test_a_vector_of_another_dimension_is_an_error_of_chroma(
    store: VectorStore, root: UUID
) -> None:
    fill(store, root, 2)
    with pytest.raises(Unavailable, match="dimension") as caught:
        store.add(root, MODEL, [chunk(5)], random_vectors(1, dimension=3))
    assert caught.value.code == "CHROMA_UNAVAILABLE"
    assert store.count(root) == 2


def test_dropping_leaves_no_file_behind(store: VectorStore) -> None:
    before, root = index_folders(), uuid4()
    fill(store, root, 1_500)
    assert index_folders() > before
    store.drop(root)
    assert index_folders() == before
    assert store.count(root) == 0
    assert store.nearest(root, random_vectors(1)[0], 3) == []


def test_a_sweep_removes_only_dropped_collections(store: VectorStore, root: UUID) -> None:
    before, dropped = index_folders(), uuid4()
    fill(store, dropped, 1_500)
    folders = index_folders() - before
    # As after a kill right behind the deletion.
    store._client.call(Collections.drop, store._name(dropped))
    fill(store, root, 1_500)
    unknown = chroma_folder() / str(uuid4())
    unknown.mkdir()
    assert set(store.sweep()) == folders
    assert unknown.is_dir()
    assert len(store.nearest(root, random_vectors(1)[0], 3)) == 3
    assert store.sweep() == []
    unknown.rmdir()


@pytest.mark.fault("The database is lost or replaced")
def test_index_folders_of_a_database_that_was_taken_away_stay(folder: Path) -> None:
    """Chroma makes a new database then, which knows none of them."""
    index = folder / str(uuid4())
    index.mkdir()
    assert chroma.sweep(folder) == []
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as database:
        database.execute("CREATE TABLE segments (id, collection)")
    assert chroma.sweep(folder) == []
    assert index.is_dir()


def test_the_collection_records_its_origin(store: VectorStore, root: UUID) -> None:
    fill(store, root, 1)
    reset_store()
    client = open_embedded(chroma_folder())
    found = client.get_collection(f"ingest_vectors_{root.hex}", embedding_function=None)
    client.close()
    assert found.metadata == {
        "embedder": "builtin",
        "model": MODEL,
        "dimension": 16,
        "space": "l2",
        "root": str(root),
    }


def test_questions_are_answered_while_chunks_are_written(store: VectorStore, root: UUID) -> None:
    vectors = random_vectors(2_000)
    fill(store, root, 1)
    writing = threading.Event()
    writing.set()
    found: list[int] = []

    def ask() -> None:
        repeat = True
        while repeat:
            repeat = writing.is_set()
            found.append(len(store.nearest(root, vectors[0], 5)))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for start in range(0, 2_000, 250):
        numbers = range(start, start + 250)
        store.add(root, MODEL, ids(numbers), vectors[start : start + 250])
    writing.clear()
    for thread in threads:
        thread.join()
    assert store.count(root) == 2_000
    assert len(found) >= 3
    assert min(found) >= 1


def test_a_closed_store_opens_with_its_records(root: UUID) -> None:
    fill(get_store(), root, 40)
    closed = get_store()
    reset_store()
    with pytest.raises(Unavailable):
        closed.count(root)
    assert get_store() is not closed
    assert get_store() is get_store()
    assert get_store().count(root) == 40


HOLD = (
    "import sys; from pathlib import Path; from apps.index.vectors.chroma import FolderLock;"
    "lock = FolderLock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
)


@pytest.mark.fault("Two processes use one data folder")
@pytest.mark.door
def test_a_second_process_is_refused_until_the_first_is_killed(
    folder: Path, configure: Callable[..., None]
) -> None:
    configure(data_dir=folder)
    reset_store()
    first = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder / "chroma")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with first:
        assert first.stdout
        assert first.stdout.readline() == "held\n"
        for claim in (claim_store, get_store):
            with pytest.raises(Unavailable, match="CHROMA_URL") as caught:
                claim()
        assert (caught.value.code, caught.value.retryable) == ("CHROMA_UNAVAILABLE", False)
        first.kill()
        first.wait()
        assert get_store().collections() == set()
        with pytest.raises(Unavailable):
            FolderLock(folder / "chroma")
    reset_store()


@pytest.mark.fault("Chroma is unavailable")
def test_a_broken_store_is_told_and_may_be_mended(
    folder: Path, configure: Callable[..., None]
) -> None:
    configure(data_dir=folder)
    reset_store()
    (folder / "chroma").mkdir()
    database = folder / "chroma" / "chroma.sqlite3"
    database.write_bytes(b"garbage" * 1_000)
    for _ in range(2):
        with pytest.raises(Unavailable, match="not a database"):
            get_store()
    database.unlink()
    assert get_store().collections() == set()
    reset_store()


@pytest.fixture
def refusal(root: UUID) -> Iterator[Callable[[str], None]]:
    """Has Chroma's database refuse what is written to its rows, as a full disk does."""

    def change(statement: str) -> None:
        with closing(sqlite3.connect(chroma_folder() / "chroma.sqlite3", timeout=10)) as database:
            database.execute(statement)
            database.commit()

    yield change
    change("DROP TRIGGER IF EXISTS full")


@pytest.mark.fault("Chroma is unavailable")
def test_what_could_not_be_written_can_be_taken_back(
    store: VectorStore, root: UUID, refusal: Callable[[str], None]
) -> None:
    fill(store, root, 3)
    # Chroma catches up with what is left in its queue at the first read, and then never again.
    assert store.count(root) == 3
    refusal(
        "CREATE TRIGGER full BEFORE INSERT ON embeddings "
        "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
    )
    with pytest.raises(Unavailable):
        fill(store, root, 5, SECOND)
    refusal("DROP TRIGGER full")

    store.delete(root, ids(range(5), SECOND))

    store.add(root, MODEL, [chunk(9)], random_vectors(1))
    assert store.ids(root) == set(ids((0, 1, 2, 9)))


@pytest.mark.fault("Chroma is unavailable")
def test_a_vector_that_nobody_wrote_is_found_by_an_audit(store: VectorStore, root: UUID) -> None:
    count = damage.SYNC_THRESHOLD + 50
    fill(store, root, count)
    reset_store()
    damage.vector_flipped(chroma_folder(), root, 16)

    store = get_store()
    store.audit(root, ids(range(count)))
    assert "does not hold what was written" in store.examine(root)
    store.set_aside([root])
    assert store.examine(root) == ""
