"""A first ingest can be searched before it ends: what was changed last comes first, and answers say
what they lack. Afterwards all is as if it had been published at once."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.test import Client

from apps.core.errors import Unavailable
from apps.embedding.static import MODEL_ID
from apps.index import endings, queries
from apps.index.mapped import lists
from apps.index.models import IndexLock, IngestRun, Root, SourceFile
from apps.index.texts import get_texts
from apps.ingest import services
from apps.ingest.runs import batches, integrity, queue, recovery, sweep
from apps.ingest.runs.first_slices import FirstSlices
from apps.ingest.watching.states import states
from apps.ingest.watching.watcher import Watcher
from tests.ingest.stages import Nth, hook
from tests.support.ingested import files_of, ingest, ingest_alone, outdate, write_files
from tests.support.parts import chunk_ids, parts_on_disk, unlisted_parts
from tests.support.waiting import wait_until
from tests.support.working import working

pytestmark = [pytest.mark.door, pytest.mark.django_db(transaction=True)]

FILES = 12
PARTIAL = "harbour: 2 of 12 files are ingested so far, the last changed first."

Ask = Callable[..., dict[str, Any]]
Contents = Callable[[Root], dict[str, str]]


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch, configure: Callable[..., None]) -> None:
    configure(ingest_flush_every=1)
    monkeypatch.setattr(batches, "READ_AT_ONCE", 2)
    monkeypatch.setattr(batches, "ROWS_PER_WRITE", 1)


@pytest.fixture
def harbour(folder: Path, index: None) -> Path:
    """A folder of FILES files. Those with the highest numbers were changed last."""
    return written(folder / "harbour")


def written(folder: Path) -> Path:
    files = {f"pier_{n}.py": f"def pier_{n}():\n    return 'ships of {n}'\n" for n in range(FILES)}
    write_files(folder, files)
    for number in range(FILES):
        at = 1_700_000_000 + 3_600 * number
        os.utime(folder / f"pier_{number}.py", (at, at))
    return folder


def start(folder: Path) -> IngestRun:
    return services.start_run(path=str(folder), name=folder.name, model=MODEL_ID)


@pytest.fixture
def ask(client: Client) -> Ask:
    def post(route: str, **body: object) -> dict[str, Any]:
        answer = client.post(f"/tools/{route}", body, content_type="application/json")
        assert answer.status_code == 200, answer.content
        return dict(answer.json())

    return post


@contextmanager
def held_after(slices: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IngestRun]:
    """Start a run and have its embedder wait after some slices, until the block ends."""
    reached, over = threading.Event(), threading.Event()

    def wait() -> None:
        reached.set()
        assert over.wait(60)

    with monkeypatch.context() as patch, working():
        # Each batch is embedded between two calls.
        hook("embedding", Nth(2 * slices + 1, wait), patch.setattr)
        run = start(folder)
        try:
            assert reached.wait(60)
            yield run
        finally:
            over.set()
            wait_until(lambda: not endings.live().filter(id=run.id).exists())


def paths(answer: dict[str, Any]) -> set[str]:
    return {row["relPath"] for row in answer["results"]}


def test_answers_say_what_a_first_ingest_has_so_far(
    harbour: Path, ask: Ask, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held_after(1, harbour, monkeypatch):
        found = ask("grep", pattern="def pier_")
        assert paths(found) == {"pier_11.py", "pier_10.py"}
        assert found["partial"] == PARTIAL
        assert found["index"]["harbour"]["partial"] == {"files": 2, "of": 12}
        near = ask("vector-search", query="ships of 11")
        assert (near["results"][0]["relPath"], near["partial"]) == ("pier_11.py", PARTIAL)
        nothing = ask("grep", pattern="pier_0")
        assert (nothing["results"], nothing["partial"]) == ([], PARTIAL)
        call = {"name": "Grep", "arguments": {"pattern": "pier_11"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        answer = client.post("/mcp", message, content_type="application/json").json()
        assert answer["result"]["structuredContent"]["partial"] == PARTIAL
        assert PARTIAL in client.get("/search?q=ships").content.decode()
        assert "2 of 12 files so far" in client.get("/ingest").content.decode()
        assert PARTIAL in client.get("/health").json()["parts"]["index"]["detail"]
        (root,) = client.get("/ingest/roots").json()["roots"]
        assert (root["status"], root["counts"]["files"]) == ("embedding", 2)
    found = ask("grep", pattern="def pier_")
    assert len(paths(found)) == FILES
    assert "partial" not in found and "partial" not in found["index"]["harbour"]
    (root,) = client.get("/ingest/roots").json()["roots"]
    assert (root["status"], root["counts"]["files"]) == ("completed", FILES)


@pytest.fixture
def sizes(harbour: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of files that were published after each slice."""
    sizes: list[int] = []
    real = FirstSlices.publish

    def noting(self: FirstSlices, writer: Any, done: int) -> None:
        real(self, writer, done)
        sizes.append(queries.find_root(str(harbour)).files)

    monkeypatch.setattr(FirstSlices, "publish", noting)
    return sizes


def test_each_further_slice_is_as_large_as_all_before_it(harbour: Path, sizes: list[int]) -> None:
    root = ingest(harbour)
    assert sizes == [2, 4, 8]
    assert (root.files, root.generation) == (FILES, 4)
    # What is there is published at once from now on.
    outdate(root)
    assert ingest(harbour).generation == 5
    assert sizes == [2, 4, 8]


def test_the_last_quarter_is_published_with_the_run(harbour: Path, sizes: list[int]) -> None:
    for number in (0, 1):
        (harbour / f"pier_{number}.py").unlink()
    assert ingest(harbour).files == FILES - 2
    assert sizes == [2, 4]


def test_a_copy_is_published_at_once(
    harbour: Path, folder: Path, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "ROWS_PER_WRITE", 2 * FILES)
    ingest(harbour)
    assert sizes == [2]
    copy = ingest(written(folder / "copy"))
    assert (copy.files, copy.generation, sizes) == (FILES, 1, [2])


def nothing_is_left(client: Client) -> None:
    assert client.get("/ingest/roots").json() == {"roots": [], "lockedModelId": None}
    answer = client.post("/tools/grep", {"pattern": "pier"}, content_type="application/json")
    assert (answer.status_code, answer.json()["error"]) == (409, "INGEST_REQUIRED")
    sweep.sweep()
    sweep.maintain_grams()
    assert not Root.objects.exists() and not SourceFile.objects.exists()
    assert not IndexLock.objects.exists()
    assert not parts_on_disk()
    assert len(get_texts().keys()) == 0
    assert not [*(lists.folder().parent / "grams").glob("*.grams")]


def resume_held(monkeypatch: pytest.MonkeyPatch, over: threading.Event) -> threading.Event:
    """Have the embedder wait at its first batch, until `over` is set. Return what tells that."""
    reached = threading.Event()

    def wait() -> None:
        reached.set()
        assert over.wait(60)

    hook("embedding", Nth(1, wait), monkeypatch.setattr)
    return reached


@pytest.mark.parametrize("again", ["by the next start", "by a person"])
def test_a_cancelled_completion_of_an_interrupted_first_ingest_leaves_nothing(
    harbour: Path, client: Client, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    interrupted(harbour, monkeypatch)
    over = threading.Event()
    with monkeypatch.context() as patch:
        reached = resume_held(patch, over)
        run = completion(harbour, again)
        with working():
            try:
                assert reached.wait(60)
                client.post(f"/ingest/cancel/{run.id}", "", content_type="application/json")
            finally:
                over.set()
                wait_until(lambda: not endings.live().filter(id=run.id).exists())
    run.refresh_from_db()
    assert run.state == "cancelled"
    nothing_is_left(client)
    assert ingest(harbour).files == FILES


def completion(harbour: Path, again: str) -> IngestRun:
    """The run that adds what an interrupted one has not published."""
    if again == "by a person":
        return start(harbour)
    integrity.check()
    return endings.live().get(path=str(harbour))


def test_a_completion_that_is_cancelled_while_it_waits_leaves_nothing(
    harbour: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(harbour, monkeypatch)
    run = completion(harbour, "by the next start")
    client.post(f"/ingest/cancel/{run.id}", "", content_type="application/json")
    assert queue.drain() == []
    nothing_is_left(client)


def test_a_cancelled_completion_whose_worker_is_lost_leaves_nothing(
    harbour: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's row has its end, and the process ends before it has deleted the slices."""
    interrupted(harbour, monkeypatch)
    run = completion(harbour, "by the next start")

    def cancel() -> None:
        (job,) = queue.jobs.values()
        job.cancel()

    with monkeypatch.context() as patch:
        hook("embedding", Nth(1, cancel), patch.setattr)
        patch.setattr(sweep, "discard_run", lambda run, ending: None)
        queue.drain()
    run.refresh_from_db()
    assert run.state == "cancelled" and Root.objects.exists()
    sweep.sweep()
    nothing_is_left(client)


def test_a_cancelled_dry_run_leaves_the_slices_of_an_interrupted_ingest(
    harbour: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(harbour, monkeypatch)
    run = services.start_run(path=str(harbour), name="harbour", model=MODEL_ID, dry_run=True)
    client.post(f"/ingest/cancel/{run.id}", "", content_type="application/json")
    sweep.sweep()
    assert queries.find_root(str(harbour)).files == 4


@pytest.mark.fault("A run is cancelled")
def test_a_cancelled_first_ingest_leaves_nothing_of_its_slices(
    harbour: Path, ask: Ask, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held_after(2, harbour, monkeypatch) as run:
        assert len(paths(ask("grep", pattern="def pier_"))) == 4
        client.post(f"/ingest/cancel/{run.id}", "", content_type="application/json")
    run.refresh_from_db()
    assert run.state == "cancelled"
    nothing_is_left(client)
    assert ingest(harbour).files == FILES


def test_a_first_ingest_that_fails_leaves_nothing_of_its_slices(
    harbour: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        assert queries.find_root(str(harbour)).files == 4
        raise Unavailable("The server is gone.", code="EMBEDDER_UNAVAILABLE")

    with monkeypatch.context() as patch:
        hook("embedding", Nth(5, fail), patch.setattr)
        run = start(harbour)
        queue.drain()
    run.refresh_from_db()
    assert (run.state, run.error_code) == ("error", "EMBEDDER_UNAVAILABLE")
    nothing_is_left(client)


def test_a_stop_keeps_the_slices_and_the_next_start_adds_the_rest(
    harbour: Path, ask: Ask, folder: Path, contents: Contents, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, over = threading.Event(), threading.Event()

    def wait() -> None:
        reached.set()
        assert over.wait(60)

    with monkeypatch.context() as patch, working() as worker:
        hook("embedding", Nth(5, wait), patch.setattr)
        run = start(harbour)
        assert reached.wait(60)
        worker.end()
        over.set()
    run.refresh_from_db()
    assert (run.state, run.last_error) == ("error", "Interrupted")
    found = ask("grep", pattern="def pier_")
    assert len(paths(found)) == 4 and "4 of 12 files" in found["partial"]
    completed_by_the_next_start(harbour, ask, folder, contents)


def completed_by_the_next_start(harbour: Path, ask: Ask, folder: Path, contents: Contents) -> None:
    """Also where files have changed since: a published one, one that is gone and a new one."""
    write_files(harbour, {"pier_11.py": "def pier_changed(): ...\n", "new.py": "def new(): ...\n"})
    (harbour / "pier_10.py").unlink()
    recovery.recover()
    sweep.sweep()
    integrity.check()
    queue.drain()
    root = queries.find_root(str(harbour))
    found = ask("grep", pattern="def pier_")
    assert "partial" not in found and len(paths(found)) == FILES - 1
    assert (root.files, root.last_state, root.last_error) == (FILES, "completed", "")
    assert len(chunk_ids(root)) == root.chunks and not unlisted_parts()
    clean = ingest_alone(write_files(folder / "clean", files_of(harbour)), "clean")
    assert contents(root) == contents(clean)


def test_a_first_ingest_whose_rest_fails_is_not_begun_again_and_again(
    harbour: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(harbour, monkeypatch)

    def fail() -> None:
        raise Unavailable("The server is gone.", code="EMBEDDER_UNAVAILABLE")

    with monkeypatch.context() as patch:
        hook("embedding", Nth(1, fail), patch.setattr)
        integrity.check()
        assert len(queue.drain()) == 1
    integrity.check()
    assert queue.drain() == []
    found = ask("grep", pattern="def pier_")
    assert len(paths(found)) == 4 and "4 of 12 files" in found["partial"]
    assert ingest(harbour).files == FILES


def interrupted(harbour: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ingest a folder until the server stops, after two slices."""

    def stop() -> None:
        (job,) = queue.jobs.values()
        job.cancel(reason="the server stops")

    with monkeypatch.context() as patch:
        hook("embedding", Nth(5, stop), patch.setattr)
        start(harbour)
        queue.drain()


def test_a_folder_is_watched_once_its_first_ingest_is_complete(
    harbour: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is to come is no change."""
    interrupted(harbour, monkeypatch)
    other = ingest(repo)
    watcher = Watcher()
    watcher.start()
    try:
        wait_until(lambda: other.id in states.folders)
        assert [*states.folders] == [other.id]
        root = ingest(harbour)
        states.wake.set()
        wait_until(lambda: root.id in states.folders)
    finally:
        watcher.stop()
        watcher.join()


@pytest.mark.parametrize("seed", range(3))
def test_slices_equal_a_run_in_one_go(
    folder: Path,
    index: None,
    ask: Ask,
    contents: Contents,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    chance = Random(seed)
    words = [f"word{number}" for number in range(30)]
    files: dict[str, str | bytes] = {
        f"{chance.choice('abc')}/f{number}.py": "".join(
            f"def {chance.choice(words)}_{line}():\n    return {chance.choice(words)!r}\n\n\n"
            for line in range(chance.randint(0, 12))
        )
        for number in range(chance.randint(5, 40))
    }
    files |= {"left_out.png": b"\0\1", "empty.py": ""}
    sliced = ingest_alone(write_files(folder / "sliced", files), "sliced")
    with monkeypatch.context() as patch:
        patch.setattr(FirstSlices, "are_due", lambda self, done: False)
        whole = ingest_alone(write_files(folder / "whole", files), "whole")
    assert sliced.generation > whole.generation == 1
    assert contents(sliced) == contents(whole)
    assert counts(sliced) == counts(whole)
    assert rows(sliced) == rows(whole)
    assert len(chunk_ids(sliced)) == len(chunk_ids(whole)) == whole.chunks
    for word in words[:8]:
        assert scores(ask, "sliced", word) == pytest.approx(scores(ask, "whole", word))


def counts(root: Root) -> tuple[int, ...]:
    return root.files, root.chunks, root.embedded, root.skipped


def rows(root: Root) -> set[tuple[object, ...]]:
    files = SourceFile.objects.filter(root=root)
    assert files.count() == files.live().count()
    fields = ("path", "language", "sha256", "size", "chunks", "embedded", "spans", "skip_reason")
    return set(files.values_list(*fields))


def scores(ask: Ask, name: str, word: str) -> dict[tuple[str, str], float]:
    answer = ask("vector-search", query=f"return {word}", repository=name)
    return {(row["relPath"], row["chunk"]): row["score"] for row in answer["results"]}


def test_slices_of_a_copy_share_what_is_there(harbour: Path, folder: Path, embedded: Any) -> None:
    root = ingest(harbour)
    embedded.clear()
    copy = ingest(written(folder / "copy"))
    assert (copy.files, copy.store, embedded) == (FILES, root.store, [])
    assert copy.generation > 1
    assert len(chunk_ids(copy)) == copy.chunks == root.chunks
