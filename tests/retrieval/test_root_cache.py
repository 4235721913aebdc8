"""What is held in memory: the same answers as the stores give, never older ones, within bounds."""

import asyncio
import uuid
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import connections
from django.test import Client

from apps.core.errors import NotFound, Unavailable
from apps.core.hub import hub
from apps.index import changes, stores
from apps.index.lexical import Contents, Postings, get_lexical
from apps.index.models import Root
from apps.index.vectors.store import get_store, reset_store
from apps.ingest import services
from apps.ingest.runs import queue
from apps.ingest.runs import reindex as reindex
from apps.retrieval import root_cache as cache_module
from apps.retrieval.candidates import CacheSource, Hits
from apps.retrieval.query import EmbeddedQuery
from apps.retrieval.root_cache import (
    IDLE_SECONDS,
    RETRY_SECONDS,
    LoadedRoot,
    RootCache,
    size_in_bytes,
)
from apps.retrieval.tools import VECTOR_SEARCH
from tests.retrieval.conftest import Ask
from tests.support.ingested import ingest, ingest_sample, outdate, write_files

Turn = Callable[..., None]
QUESTION = "how long to wait before trying again"
DIMENSION = 2
SECONDS = 30


# --- over real stores -----------------------------------------------------------------------------


class Told:
    """The question of one search after another, and whether Chroma was asked for any of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
        self._ask = ask
        self.chroma = 0
        self.restart(monkeypatch)
        for place in ("gather", "candidates", "results"):
            monkeypatch.setattr(f"apps.retrieval.{place}.get_store", self._counted)

    def restart(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A process that has just begun holds nothing."""
        self.memory = RootCache()
        monkeypatch.setattr("apps.retrieval.candidates.root_cache", self.memory)

    def __call__(self, *, degraded: bool = False, **body: Any) -> tuple[list[dict[str, Any]], bool]:
        """The results, and whether memory gave them without Chroma."""
        before = self.chroma
        answer = self._ask(query=QUESTION, **body)
        assert ("degraded" in answer) is degraded
        assert self.memory.wait(SECONDS)
        return answer["results"], self.chroma == before

    def _counted(self) -> Any:
        self.chroma += 1
        return get_store()


@pytest.fixture
def told(
    transactional_db: None, configure: Turn, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> Iterator[Told]:
    configure(retrieval_memory_mb=16)
    for root_id in stores.roots():
        stores.drop_words(root_id)
        stores.drop_vectors(root_id)
    yield Told(monkeypatch, ask)
    for root_id in stores.roots():
        stores.drop_words(root_id)
        stores.drop_vectors(root_id)


def rounded(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [result | {"score": round(result["score"], 5)} for result in results]


@pytest.mark.door
def test_memory_answers_as_the_stores_do_and_through_all_that_changes(
    told: Told, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest_sample(folder / "lighthouse")
    other = ingest(write_files(folder / "other", {"a.py": "def wait_again(): ...\n"}))
    from_stores, held = told()
    assert not held
    from_memory, held = told()
    assert held
    assert rounded(from_memory) == rounded(from_stores)
    assert rounded(told(path="src/")[0]) == [
        r for r in rounded(from_stores) if "src" in r["relPath"]
    ]

    # Chroma itself is gone: what is held needs it not.
    reset_store()
    assert told()[1]

    # Published: the next search knows, the one after it is answered from memory again.
    write_files(folder / "lighthouse", {"src/wait.py": "def wait_before_trying_again(): ...\n"})
    ingest(folder / "lighthouse")
    for held in (False, True):
        results, was_held = told(repository="lighthouse")
        assert was_held is held
        assert results[0]["relPath"] == "src/wait.py"

    # All embedded again.
    outdate(root)
    services.reembed(root.path)
    queue.drain()
    again, held = told(repository="lighthouse")
    assert not held
    assert rounded(told(repository="lighthouse")[0]) == rounded(again)

    # A new process.
    told.restart(monkeypatch)
    assert rounded(told(repository="lighthouse")[0]) == rounded(again)
    assert told(repository="lighthouse")[1]

    # What one file says has changed: the vectors of the others are not asked for again.
    asked: list[str] = []
    vectors = get_store().vectors

    def counted(root_id: uuid.UUID, ids: Sequence[str]) -> Any:
        asked.extend(ids)
        return vectors(root_id, ids)

    with monkeypatch.context() as patch:
        patch.setattr(type(get_store()), "vectors", lambda store, *args: counted(*args))
        write_files(folder / "lighthouse", {"src/wait.py": "def wait_as_long_again(): ...\n"})
        ingest(folder / "lighthouse")
        from_stores, held = told(repository="lighthouse")
        assert not held
    assert len(asked) == 1
    assert "src/wait.py" in asked[0]
    from_memory, held = told(repository="lighthouse")
    assert held
    assert rounded(from_memory) == rounded(from_stores)

    # Removed: it is not asked, whatever is held of it.
    services.remove(root.path)
    assert {result["repo"] for result in told()[0]} == {other.name}
    with pytest.raises(NotFound):
        services.remove(root.path)


@pytest.mark.door
def test_a_word_index_that_is_built_again_changes_nothing_of_what_is_held(
    told: Told, folder: Path
) -> None:
    root = ingest_sample(folder / "lighthouse")
    write_files(folder / "lighthouse", {"README.md": "# Ships\n\nNothing else.\n"})
    root = ingest(folder / "lighthouse")
    told()
    results, held = told()
    assert held
    reindex.rebuild(root, lambda: False)
    assert told() == (results, True)


@pytest.mark.door
def test_answers_are_marked_while_the_words_are_rebuilt_and_no_longer(
    told: Told, folder: Path, ask: Ask, client: Client, configure: Turn
) -> None:
    configure(retrieval_memory_mb=0)
    root = ingest_sample(folder / "lighthouse")
    assert "degraded" not in ask(query=QUESTION)
    get_lexical().drop(root.id)
    marked = "vectors only: the words of lighthouse are being rebuilt"
    answer = ask(query=QUESTION)
    assert answer["results"]
    assert answer["degraded"] == VECTOR_SEARCH.run({"query": QUESTION})["degraded"] == marked
    call = {"name": "VectorSearch", "arguments": {"query": QUESTION}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accepts = {"accept": "application/json, text/event-stream"}
    told_by_mcp = client.post(
        "/mcp", request, content_type="application/json", headers=accepts
    ).json()
    assert told_by_mcp["result"]["structuredContent"]["degraded"] == marked

    for gone_on in reindex.roots_needing_rebuild():
        reindex.rebuild(gone_on, stop=lambda: False)
    assert "degraded" not in ask(query=QUESTION)


@pytest.mark.door
def test_what_words_and_vectors_do_not_both_have_is_not_held(told: Told, folder: Path) -> None:
    root = ingest_sample(folder / "lighthouse")
    get_lexical().drop(root.id)
    for _ in range(2):
        results, held = told(degraded=True)
        assert not held
        assert {result["matchedBy"] for result in results} == {"vector"}


@pytest.mark.door
def test_a_notice_of_roots_has_them_renewed(
    told: Told, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest_sample(folder / "lighthouse")

    async def renewed_after_a_notice() -> tuple[list[Root], int]:
        told: asyncio.Future[tuple[list[Root], int]] = asyncio.get_running_loop().create_future()

        def renew(*asked: Any) -> None:
            connections.close_all()  # of this thread, which ends with the test
            told.get_loop().call_soon_threadsafe(told.set_result, asked)

        monkeypatch.setattr(cache_module.root_cache, "refresh", renew)
        following = asyncio.create_task(cache_module.follow_changes())
        await asyncio.sleep(0)  # it listens now
        hub.notify(changes.ROOTS)
        try:
            return await asyncio.wait_for(told, SECONDS)
        finally:
            following.cancel()

    (found,), dimension = asyncio.run(renewed_after_a_notice())
    assert (found.id, found.generation, dimension) == (root.id, 1, 256)


def contents_of(chunks: int) -> Contents:
    """Chunks without a name or a word."""
    none = np.zeros(0, np.int32)
    words = Postings({}, array("q", [0]), none, none.astype(np.float32), chunks, 0)
    return Contents([str(i) for i in range(chunks)], [], np.zeros(chunks, np.intp), [], [], words)


# --- what is held, and what makes room ------------------------------------------------------------


class Shelf:
    """Roots of so many megabytes, a clock, and what was loaded in turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        self.loaded: list[str] = []
        self.fails: Unavailable | None = None
        self.memory = RootCache(lambda: self.now)
        monkeypatch.setattr(cache_module, "load", self._load)
        monkeypatch.setattr(cache_module, "live_file_ids", lambda root: frozenset())
        for name in ("get_lexical", "get_store"):
            monkeypatch.setattr(cache_module, name, lambda: None)

    def root(self, name: str, megabytes: float = 1, generation: int = 1) -> Root:
        chunks = int(megabytes * 2**20 / size_in_bytes(1, DIMENSION))
        made = Root(id=uuid.uuid5(uuid.NAMESPACE_URL, name), name=name, generation=generation)
        made.embedded = chunks
        return made

    def asks(self, root: Root, dimension: int = DIMENSION) -> bool:
        """Whether a search finds a root held; what it set off has ended then."""
        held = self.memory.get(root, dimension)
        assert self.memory.wait(SECONDS)
        return held is not None

    def publishes(self, *roots: Root) -> None:
        self.memory.refresh(roots, DIMENSION)
        assert self.memory.wait(SECONDS)

    def _load(self, root: Root, *stores: Any) -> LoadedRoot:
        self.loaded.append(f"{root.name} {root.generation}")
        if self.fails:
            raise self.fails
        return LoadedRoot(root.generation, contents_of(0), np.zeros((0, DIMENSION), np.float32))


@pytest.fixture
def shelf(configure: Turn, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    configure(retrieval_memory_mb=4)
    return Shelf(monkeypatch)


def test_a_root_is_held_from_the_second_search_on(shelf: Shelf) -> None:
    assert [shelf.asks(shelf.root("a")) for _ in range(3)] == [False, True, True]
    assert shelf.loaded == ["a 1"]


def test_a_new_generation_is_loaded_and_the_old_one_not_answered_from(shelf: Shelf) -> None:
    old, new = shelf.root("a"), shelf.root("a", generation=2)
    shelf.asks(old)
    assert not shelf.asks(new)
    assert shelf.asks(new)
    # A search that began before it was published.
    assert not shelf.asks(old)
    assert shelf.loaded == ["a 1", "a 2"]


def test_vectors_of_another_length_are_not_compared(shelf: Shelf) -> None:
    root = shelf.root("a")
    shelf.asks(root)
    assert not shelf.asks(root, DIMENSION + 1)
    assert shelf.asks(root)


def test_what_is_larger_than_the_room_is_left_to_the_stores(shelf: Shelf) -> None:
    large = shelf.root("large", 5)
    assert not any(shelf.asks(large) for _ in range(3))
    assert shelf.loaded == []


def test_nothing_is_held_where_no_memory_is_given(shelf: Shelf, configure: Turn) -> None:
    configure(retrieval_memory_mb=0)
    assert not any(shelf.asks(shelf.root("a")) for _ in range(3))
    assert shelf.loaded == []


def test_only_what_nobody_asks_for_makes_room(shelf: Shelf) -> None:
    a, b, late = shelf.root("a", 2), shelf.root("b", 1.5), shelf.root("late", 1)
    for root in (a, b):
        shelf.asks(root)
    shelf.now += IDLE_SECONDS - 1
    assert shelf.asks(b)
    assert not any(shelf.asks(late) for _ in range(2))
    shelf.now += RETRY_SECONDS + 1
    shelf.asks(late)
    assert shelf.asks(late)
    assert shelf.asks(b)
    assert not shelf.asks(a)


def test_what_could_not_be_loaded_is_tried_again_after_a_pause(shelf: Shelf) -> None:
    root, shelf.fails = shelf.root("a"), Unavailable("away", code="CHROMA_UNAVAILABLE")
    assert not any(shelf.asks(root) for _ in range(3))
    assert shelf.loaded == ["a 1"]
    shelf.fails = None
    shelf.now += RETRY_SECONDS + 1
    shelf.asks(root)
    assert shelf.asks(root)


def test_what_is_published_is_loaded_before_anybody_asks(shelf: Shelf) -> None:
    a, new = shelf.root("a"), shelf.root("a", generation=2)
    shelf.publishes(a)
    assert shelf.asks(a)
    shelf.publishes(a, new)
    assert shelf.asks(new)
    shelf.publishes(new)
    assert shelf.loaded == ["a 1", "a 2"]


def test_what_nobody_has_asked_for_gives_way_first(shelf: Shelf) -> None:
    asked, published, late = shelf.root("asked", 2), shelf.root("b", 1.5), shelf.root("late", 1)
    shelf.asks(asked)
    shelf.publishes(published)
    shelf.now += 1
    assert shelf.asks(asked)
    assert [shelf.asks(late) for _ in range(2)] == [False, True]
    assert shelf.asks(asked)
    assert not shelf.asks(published)


def test_what_is_published_takes_no_room_from_what_is_asked_for(shelf: Shelf) -> None:
    asked = [shelf.root(name, 2) for name in "ab"]
    for root in asked:
        shelf.asks(root)
    shelf.publishes(shelf.root("late"), shelf.root("large", 5))
    assert all(map(shelf.asks, asked))
    assert shelf.loaded == ["a 1", "b 1"]


def test_distances_are_those_of_the_vectors() -> None:
    random = np.random.default_rng(5)
    units = random.standard_normal((500, 8)).astype(np.float32)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    held = LoadedRoot(1, contents_of(500), units)
    query = EmbeddedQuery(QUESTION, vector=units[3])
    distances = CacheSource([(Root(), held)], query).nearest(500).values
    true = ((units - units[3]) ** 2).sum(axis=1)
    assert distances.tolist() == pytest.approx(true.tolist(), abs=1e-5)
    assert np.all(distances >= 0)


def test_the_best_of_a_side_come_in_order_and_of_equals_the_first_written() -> None:
    side = Hits(np.arange(6), np.array([3.0, 1.0, 2.0, 1.0, 4.0, 2.0]), more=False)
    assert side.best(3.0).keys.tolist() == [1, 3, 2, 5, 0]
    assert side.best(0.5).values.tolist() == []


def test_of_equals_at_the_end_no_more_go_on_than_are_asked_of_each_root() -> None:
    units = np.eye(3, DIMENSION, dtype=np.float32)
    held = [(Root(name=name), LoadedRoot(1, contents_of(3), units)) for name in "ab"]
    source = CacheSource(held, EmbeddedQuery("any", vector=units[0]))
    side = Hits(np.arange(6), np.array([2.0, 1.0, 2.0, 2.0, 2.0, 3.0]), more=False)
    assert source.best(side, 2, 2.0).keys.tolist() == [1, 0, 3, 4]
    assert source.best(side, 5, 2.0).keys.tolist() == [1, 0, 2, 3, 4]
