"""The root cache returns what the stores return, is never stale, and stays within its limit."""

import asyncio
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import connections
from django.test import Client

from apps.core.concurrency.hub import hub
from apps.core.errors import NotFound, Unavailable
from apps.index import changes, stores
from apps.index.lexical import get_lexical
from apps.index.mapped.copies import get_copies, memory_of
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root, SourceFile
from apps.index.vectors.store import get_store, reset_store
from apps.ingest import services
from apps.ingest.runs import queue, reindex
from apps.retrieval import root_cache as cache_module
from apps.retrieval.candidates import CacheSource, Hits
from apps.retrieval.query import SearchQuery
from apps.retrieval.root_cache import IDLE_SECONDS, RETRY_SECONDS, RootCache
from apps.tools.vector_search import VECTOR_SEARCH
from tests.retrieval.conftest import Ask
from tests.support.ingested import ingest, ingest_sample, outdate, write_files
from tests.support.mapped import mapped_of, unit_vectors

Turn = Callable[..., None]
QUESTION = "how long to wait before trying again"
DIMENSION = 2
SECONDS = 30


# --- over real stores -----------------------------------------------------------------------------


class CachedSearch:
    """Searches, and whether each queried Chroma."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
        self._ask = ask
        self.chroma = 0
        self.restart(monkeypatch)
        monkeypatch.setattr("apps.retrieval.gather.get_store", self._counted)

    def restart(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A process that has just begun holds nothing."""
        self.cache = RootCache()
        monkeypatch.setattr("apps.retrieval.candidates.root_cache", self.cache)

    def __call__(self, *, degraded: bool = False, **body: Any) -> tuple[list[dict[str, Any]], bool]:
        """The results, and whether memory gave them without Chroma."""
        before = self.chroma
        answer = self._ask(query=QUESTION, **body)
        assert ("degraded" in answer) is degraded
        assert self.cache.wait(SECONDS)
        return answer["results"], self.chroma == before

    def _counted(self) -> Any:
        self.chroma += 1
        return get_store()


@pytest.fixture
def answers(
    transactional_db: None, configure: Turn, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> Iterator[CachedSearch]:
    configure(retrieval_memory_mb=16)
    for root_id in stores.roots():
        stores.drop_words(root_id)
        stores.drop_vectors(root_id)
    yield CachedSearch(monkeypatch, ask)
    for root_id in stores.roots():
        stores.drop_words(root_id)
        stores.drop_vectors(root_id)


def near(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What equals results with the same distances, but for the last digits."""
    return [result | {"score": pytest.approx(result["score"], abs=1e-4)} for result in results]


@contextmanager
def without_copies(configure: Turn) -> Iterator[None]:
    """Runs in the block write no mapped copy, as those of a Celery worker."""
    configure(retrieval_memory_mb=0)
    yield
    configure(retrieval_memory_mb=16)


@pytest.mark.fault("Chroma is unavailable")
@pytest.mark.door
def test_cached_roots_give_the_results_of_the_stores_after_every_change(
    answers: CachedSearch, folder: Path, monkeypatch: pytest.MonkeyPatch, configure: Turn
) -> None:
    with without_copies(configure):
        root = ingest_sample(folder / "lighthouse")
        other = ingest(write_files(folder / "other", {"a.py": "def wait_again(): ...\n"}))
    from_stores, cached = answers()
    assert not cached
    from_memory, cached = answers()
    assert cached
    assert from_memory == near(from_stores)
    assert answers(path="src/")[0] == near([r for r in from_stores if "src" in r["relPath"]])

    # Chroma is gone: cached roots do not need it.
    reset_store()
    assert answers()[1]

    # Published with its copy: the next search knows, and is answered from memory.
    write_files(folder / "lighthouse", {"src/wait.py": "def wait_before_trying_again(): ...\n"})
    ingest(folder / "lighthouse")
    results, cached = answers(repository="lighthouse")
    assert cached
    assert results[0]["relPath"] == "src/wait.py"

    # All embedded again.
    outdate(root)
    with without_copies(configure):
        services.reembed(root.path)
        queue.drain()
    rebuilt, cached = answers(repository="lighthouse")
    assert not cached
    assert answers(repository="lighthouse")[0] == near(rebuilt)

    # A new process: it maps what is there.
    answers.restart(monkeypatch)
    assert answers(repository="lighthouse") == (near(rebuilt), True)

    # One file has changed: only its vectors are requested.
    requested: list[str] = []
    vectors = get_store().vectors

    def counted(root_id: uuid.UUID, ids: Sequence[str]) -> Any:
        requested.extend(ids)
        return vectors(root_id, ids)

    with monkeypatch.context() as patch:
        patch.setattr(type(get_store()), "vectors", lambda store, *args: counted(*args))
        write_files(folder / "lighthouse", {"src/wait.py": "def wait_as_long_again(): ...\n"})
        with without_copies(configure):
            ingest(folder / "lighthouse")
        from_stores, cached = answers(repository="lighthouse")
        assert not cached
    changed = SourceFile.objects.live().get(root=root, path="src/wait.py")
    assert requested == [f"{changed.id}:0"]
    from_memory, cached = answers(repository="lighthouse")
    assert cached
    assert from_memory == near(from_stores)

    # Removed: the cache does not answer for it.
    services.remove(root.path)
    assert {result["repo"] for result in answers()[0]} == {other.name}
    copies = {path.name for path in get_copies().folder.iterdir()}
    assert (root.id.hex in copies, other.id.hex in copies) == (False, True)
    with pytest.raises(NotFound):
        services.remove(root.path)


@pytest.mark.door
def test_rebuilding_the_word_index_does_not_change_the_cache(
    answers: CachedSearch, folder: Path
) -> None:
    root = ingest_sample(folder / "lighthouse")
    write_files(folder / "lighthouse", {"README.md": "# Ships\n\nNothing else.\n"})
    root = ingest(folder / "lighthouse")
    answers()
    results, cached = answers()
    assert cached
    reindex.rebuild(root, lambda: False)
    assert answers() == (results, True)


@pytest.mark.fault("The word index is lost")
@pytest.mark.door
def test_results_are_degraded_only_while_the_words_are_rebuilt(
    answers: CachedSearch, folder: Path, ask: Ask, client: Client, configure: Turn
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
def test_a_root_with_missing_words_or_vectors_is_not_cached(
    answers: CachedSearch, folder: Path, configure: Turn
) -> None:
    with without_copies(configure):
        root = ingest_sample(folder / "lighthouse")
    get_lexical().drop(root.id)
    for _ in range(2):
        results, cached = answers(degraded=True)
        assert not cached
        assert {result["matchedBy"] for result in results} == {"vector"}


@pytest.mark.door
def test_a_change_notice_refreshes_the_cache(
    answers: CachedSearch, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest_sample(folder / "lighthouse")

    async def refreshed_after_a_notice() -> tuple[list[Root], int]:
        refreshed: asyncio.Future[tuple[list[Root], int]] = (
            asyncio.get_running_loop().create_future()
        )

        def refresh(*arguments: Any) -> None:
            connections.close_all()  # of this thread, which ends with the test
            refreshed.get_loop().call_soon_threadsafe(refreshed.set_result, arguments)

        monkeypatch.setattr(cache_module.root_cache, "refresh", refresh)
        following = asyncio.create_task(cache_module.follow_changes())
        await asyncio.sleep(0)  # it listens now
        hub.notify(changes.ROOTS)
        try:
            return await asyncio.wait_for(refreshed, SECONDS)
        finally:
            following.cancel()

    (found,), dimension = asyncio.run(refreshed_after_a_notice())
    assert (found.id, found.generation, dimension) == (root.id, 1, 256)


# --- what is cached, and what is evicted ----------------------------------------------------------


class Shelf:
    """Roots of so many megabytes, a clock, and what was loaded in turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        self.loaded: list[str] = []
        self.written: set[str] = set()  # roots whose copies are on the disk
        self.fails: Unavailable | None = None
        self.cache = RootCache(lambda: self.now)
        monkeypatch.setattr(cache_module, "load", self._load)
        monkeypatch.setattr(cache_module, "live_file_ids", lambda root: frozenset())
        monkeypatch.setattr(cache_module, "installation_id", lambda: "ours")
        monkeypatch.setattr(cache_module, "get_copies", lambda: self)

    def root(self, name: str, megabytes: float = 1, generation: int = 1) -> Root:
        chunks = int(megabytes * 2**20 / memory_of(1, DIMENSION))
        made = Root(id=uuid.uuid5(uuid.NAMESPACE_URL, name), name=name, generation=generation)
        made.embedded = chunks
        return made

    def asks(self, root: Root, dimension: int = DIMENSION) -> bool:
        """Return True if a search finds a root in the cache. Waits for the loads that it starts."""
        cached = self.cache.get(root, dimension)
        assert self.cache.wait(SECONDS)
        return cached is not None

    def publishes(self, *roots: Root) -> None:
        self.cache.refresh(roots, DIMENSION)
        assert self.cache.wait(SECONDS)

    def open(self, root: Root, dimension: int) -> MappedRoot | None:
        """The verb of MappedCopies."""
        if root.name not in self.written:
            return None
        return mapped_of(unit_vectors(1, DIMENSION), generation=root.generation)

    def _load(self, root: Root, *arguments: Any) -> MappedRoot:
        self.loaded.append(f"{root.name} {root.generation}")
        if self.fails:
            raise self.fails
        return mapped_of(unit_vectors(1, DIMENSION), generation=root.generation)


@pytest.fixture
def shelf(configure: Turn, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    configure(retrieval_memory_mb=4)
    return Shelf(monkeypatch)


def test_a_copy_that_exists_serves_the_first_search(shelf: Shelf) -> None:
    shelf.written.add("a")
    assert [shelf.asks(shelf.root("a")) for _ in range(2)] == [True, True]
    assert shelf.loaded == []


def test_a_search_waits_for_another_that_maps_the_copy(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the first search after a start, while the server prepares for it."""
    root, opening, go_on = shelf.root("a"), threading.Event(), threading.Event()
    shelf.written.add("a")
    opened = shelf.open

    def slowly(root: Root, dimension: int) -> MappedRoot | None:
        opening.set()
        assert go_on.wait(SECONDS)
        return opened(root, dimension)

    monkeypatch.setattr(shelf, "open", slowly)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(shelf.asks, root)
        assert opening.wait(SECONDS)
        second = pool.submit(shelf.asks, root)
        while not waiters(shelf.cache) and not second.done():
            pass
        go_on.set()
        assert first.result(SECONDS) and second.result(SECONDS)
    assert shelf.loaded == []


def waiters(cache: RootCache) -> int:
    """How many threads wait for the cache."""
    return len(cache._changed._waiters)  # type: ignore[attr-defined]


def test_a_copy_that_exists_is_not_mapped_without_room(shelf: Shelf) -> None:
    shelf.written |= {"a", "b", "large"}
    assert shelf.asks(shelf.root("a", 3))
    assert not shelf.asks(shelf.root("b", 2))
    assert not shelf.asks(shelf.root("large", 5))
    shelf.now += IDLE_SECONDS + RETRY_SECONDS
    assert shelf.asks(shelf.root("b", 2))


def test_a_removed_root_is_unmapped(shelf: Shelf) -> None:
    removed, stays = shelf.root("a"), shelf.root("b")
    shelf.asks(removed)
    shelf.asks(stays)
    shelf.cache.forget_others([stays])
    assert not shelf.asks(removed)
    assert shelf.asks(stays)


def test_a_root_is_cached_from_the_second_search_on(shelf: Shelf) -> None:
    assert [shelf.asks(shelf.root("a")) for _ in range(3)] == [False, True, True]
    assert shelf.loaded == ["a 1"]


def test_a_new_generation_replaces_the_cached_one(shelf: Shelf) -> None:
    old, new = shelf.root("a"), shelf.root("a", generation=2)
    shelf.asks(old)
    assert not shelf.asks(new)
    assert shelf.asks(new)
    # A search that began before it was published.
    assert not shelf.asks(old)
    assert shelf.loaded == ["a 1", "a 2"]


def test_vectors_of_another_dimension_are_not_compared(shelf: Shelf) -> None:
    root = shelf.root("a")
    shelf.asks(root)
    assert not shelf.asks(root, DIMENSION + 1)
    assert shelf.asks(root)


def test_a_root_larger_than_the_limit_is_not_cached(shelf: Shelf) -> None:
    large = shelf.root("large", 5)
    assert not any(shelf.asks(large) for _ in range(3))
    assert shelf.loaded == []


def test_a_limit_of_zero_disables_the_cache(shelf: Shelf, configure: Turn) -> None:
    configure(retrieval_memory_mb=0)
    assert not any(shelf.asks(shelf.root("a")) for _ in range(3))
    assert shelf.loaded == []


def test_only_idle_roots_are_evicted(shelf: Shelf) -> None:
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


def test_a_failed_load_is_retried_after_a_pause(shelf: Shelf) -> None:
    root, shelf.fails = shelf.root("a"), Unavailable("away", code="CHROMA_UNAVAILABLE")
    assert not any(shelf.asks(root) for _ in range(3))
    assert shelf.loaded == ["a 1"]
    shelf.fails = None
    shelf.now += RETRY_SECONDS + 1
    shelf.asks(root)
    assert shelf.asks(root)


def test_a_published_root_is_loaded_before_the_first_search(shelf: Shelf) -> None:
    a, new = shelf.root("a"), shelf.root("a", generation=2)
    shelf.publishes(a)
    assert shelf.asks(a)
    shelf.publishes(a, new)
    assert shelf.asks(new)
    shelf.publishes(new)
    assert shelf.loaded == ["a 1", "a 2"]


def test_a_root_that_was_never_searched_is_evicted_first(shelf: Shelf) -> None:
    searched, published, late = (
        shelf.root("searched", 2),
        shelf.root("b", 1.5),
        shelf.root("late", 1),
    )
    shelf.asks(searched)
    shelf.publishes(published)
    shelf.now += 1
    assert shelf.asks(searched)
    assert [shelf.asks(late) for _ in range(2)] == [False, True]
    assert shelf.asks(searched)
    assert not shelf.asks(published)


def test_a_published_root_does_not_evict_a_searched_one(shelf: Shelf) -> None:
    searched = [shelf.root(name, 2) for name in "ab"]
    for root in searched:
        shelf.asks(root)
    shelf.publishes(shelf.root("late"), shelf.root("large", 5))
    assert all(map(shelf.asks, searched))
    assert shelf.loaded == ["a 1", "b 1"]


def test_distances_are_those_of_the_vectors() -> None:
    units = unit_vectors(500, 256)
    cached = mapped_of(units)
    query = SearchQuery(QUESTION, vector=units[3])
    distances = CacheSource([(Root(), cached)], query).nearest(500).values
    true = ((units - units[3]) ** 2).sum(axis=1)
    assert distances.tolist() == pytest.approx(true.tolist(), abs=5e-5)
    assert np.all(distances >= 0)


def test_hits_are_sorted_by_value_and_ties_keep_their_order() -> None:
    side = Hits(np.arange(6), np.array([3.0, 1.0, 2.0, 1.0, 4.0, 2.0]), more=False)
    assert side.best(3.0).keys.tolist() == [1, 3, 2, 5, 0]
    assert side.best(0.5).values.tolist() == []


def test_of_tied_hits_at_most_n_of_each_root_are_kept() -> None:
    units = np.array([[1, 0], [0, 1], [0, -1]], np.float32)
    cached = [(Root(name=name), mapped_of(units)) for name in "ab"]
    source = CacheSource(cached, SearchQuery("any", vector=units[0]))
    side = Hits(np.arange(6), np.array([2.0, 1.0, 2.0, 2.0, 2.0, 3.0]), more=False)
    assert source.best(side, 2, 2.0).keys.tolist() == [1, 0, 3, 4]
    assert source.best(side, 5, 2.0).keys.tolist() == [1, 0, 2, 3, 4]
