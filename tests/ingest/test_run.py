"""A run from start to end: what is searchable afterwards, what the rows say, what is left out."""

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.core.errors import InvalidInput, NotFound
from apps.embedding.static import MODEL_ID, StaticCodeEmbedder
from apps.index import queries
from apps.index.mapped.part_writer import PartWriter
from apps.index.models import IndexLock, IngestRun, Root, SourceFile
from apps.index.root_directory import read_file
from apps.ingest import services
from apps.ingest.runs import batches, queue, submit, sweep
from tests.ingest.stages import hook
from tests.support.index import chunks_of
from tests.support.ingested import (
    SAMPLE,
    files_of,
    ingest,
    ingest_alone,
    outdate,
    run_ingest,
    write_files,
)
from tests.support.parts import chunk_ids, parts_on_disk

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def status(client: Client, run: IngestRun) -> dict[str, Any]:
    return dict(client.get(f"/ingest/status/{run.id}").json())


@pytest.mark.parametrize(("size", "begun"), [(4_000_000, 3), (0, 1)])
def test_small_files_are_parsed_while_those_before_them_are_embedded(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch, size: int, begun: int
) -> None:
    steps: list[str] = []
    monkeypatch.setattr(batches, "READ_AT_ONCE", 1)
    monkeypatch.setattr(batches, "AHEAD_BYTES", size)
    for stage in ("chunking", "embedding"):
        hook(stage, partial(steps.append, stage), monkeypatch.setattr)
    assert run_ingest(repo).chunks >= 4
    # Each stage calls before and after.
    assert steps.index("embedding") == 2 * begun


def test_a_folder_becomes_searchable(client: Client, repo: Path, index: None) -> None:
    run = run_ingest(repo, "lighthouse", description="Ships")
    root = queries.find_root(str(repo))
    wire = status(client, run)
    counts = wire["counts"]
    assert wire == {
        "runId": str(run.id),
        "state": "completed",
        "message": "Completed",
        "counts": counts | {"files": 4, "embedded": counts["chunks"], "skipped": 1},
        "currentFile": "src/store.js",
        "fileIndex": 4,
        "fileTotal": 4,
        "percent": 100.0,
        "etaMs": 0,
    }
    assert len(chunk_ids(root)) == counts["chunks"] >= 4
    listed = client.get("/ingest/roots").json()
    assert listed["lockedModelId"] == MODEL_ID
    (row,) = listed["roots"]
    assert (row["runId"], row["status"], row["counts"]) == (str(run.id), "completed", counts)
    assert (row["name"], row["description"], row["path"]) == ("lighthouse", "Ships", str(repo))


def test_every_chunk_has_its_facts_and_its_text(repo: Path, index: None) -> None:
    root = ingest(repo)
    live = {str(file.id): file for file in SourceFile.objects.filter(root=root).live()}
    for chunk in chunks_of(root):
        facts = chunk.facts
        assert facts.id == f"{facts.source_file}:{facts.chunk_index}"
        lines = SAMPLE[facts.path].split("\n")[facts.start_line - 1 : facts.end_line]
        assert chunk.text == "\n".join(lines)
        digest = sha256(f"{facts.path}{facts.chunk_index}{chunk.text}".encode()).hexdigest()
        assert chunk.hash == digest
        assert facts.sha256 == sha256(SAMPLE[facts.path].encode()).hexdigest()
        file = live[facts.source_file]
        assert (file.path, file.sha256) == (facts.path, facts.sha256)


@pytest.mark.fault("What a completed run promises")
def test_completed_means_that_every_eligible_file_is_there(repo: Path, index: None) -> None:
    root = ingest(repo)
    live = SourceFile.objects.filter(root=root).live()
    eligible = {path for path in SAMPLE if path != "package-lock.json"}
    hashes = {path: sha256(SAMPLE[path].encode()).hexdigest() for path in eligible}
    assert dict(live.ingested().values_list("path", "sha256")) == hashes
    assert [(file.path, bool(file.skip_reason)) for file in live.skipped()] == [
        ("package-lock.json", True)
    ]
    assert (root.files, root.skipped) == (4, 1)


@pytest.mark.fault("An ingest is refused")
def test_a_folder_without_eligible_files_ends_in_error(
    client: Client, folder: Path, index: None
) -> None:
    write_files(folder, {"package-lock.json": "{}", "photo.png": b"\x89PNG\0\0"})
    run = run_ingest(folder, "empty")
    wire = status(client, run)
    assert (wire["state"], wire["message"]) == ("error", f"No eligible files found in {folder}")
    rules = "Generated (1 file), Binary (1 file)"
    assert wire["lastError"] == f"No eligible files found in {folder}. Left out: {rules}"
    assert wire["counts"] == {"files": 0, "chunks": 0, "embedded": 0, "skipped": 0}
    assert not Root.objects.exists()
    assert not parts_on_disk()
    # Why nothing was eligible stays to be seen.
    assert {file.path for file in queries.listed_by(run).skipped()} == {
        "package-lock.json",
        "photo.png",
    }


def test_blank_files_alone_change_nothing(client: Client, folder: Path, index: None) -> None:
    write_files(folder, {"a.py": "\n\n   \n", "b.py": ""})
    run = run_ingest(folder, "blank")
    wire = status(client, run)
    assert (wire["state"], wire["message"]) == ("skipped", "No changes detected")
    assert wire["percent"] == 100.0
    assert {file.path for file in queries.listed_by(run).skipped()} == {"a.py", "b.py"}
    assert not Root.objects.exists()
    assert not IndexLock.objects.exists()
    assert not parts_on_disk()


def test_a_dry_run_leaves_nothing_but_its_skip_list(
    client: Client, repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*args: object) -> None:
        raise AssertionError("a dry run embeds nothing")

    with monkeypatch.context() as patch:
        patch.setattr(StaticCodeEmbedder, "embed_documents", never)
        run = run_ingest(repo, "rehearsal", dry_run=True)
    wire = status(client, run)
    assert (wire["state"], wire["percent"]) == ("completed", 100.0)
    assert client.get("/ingest/roots").json() == {"roots": [], "lockedModelId": None}
    assert not parts_on_disk()
    assert [file.path for file in queries.listed_by(run).skipped()] == ["package-lock.json"]
    real = run_ingest(repo, "lighthouse")
    assert wire["counts"] == status(client, real)["counts"]
    # The rehearsal's list has given way to the real one.
    assert not queries.listed_by(run).skipped().exists()


def test_ingesting_again_equals_a_clean_ingest(
    folder: Path, repo: Path, index: None, contents: Callable[[Root], dict[str, str]]
) -> None:
    root = ingest(repo, "before", description="old")
    first_run = root.last_run_id
    (repo / "main.txt").unlink()
    write_files(repo, {"src/retry.py": "def changed() -> None:\n    pass\n", "new.md": "# New\n"})
    second = ingest(repo, "after", description="new")
    clean = ingest_alone(write_files(folder / "copy", files_of(repo)), "copy")
    assert contents(second) == contents(clean)
    assert (second.id, second.generation) == (root.id, 2)
    assert (second.name, second.description) == ("after", "new")
    assert second.last_run_id != first_run
    assert len(chunk_ids(root)) == len(chunk_ids(clean)) == second.chunks == clean.chunks
    # Of the first ingest nothing is left but what has not changed.
    unchanged = SourceFile.objects.filter(run_id=first_run).values_list("path", flat=True)
    assert set(unchanged) == {"README.md", "package-lock.json", "src/store.js"}


def test_reembed_through_the_door(client: Client, repo: Path, index: None) -> None:
    root = ingest(repo, "lighthouse", description="Ships")
    outdate(root)
    answer = client.post(f"/ingest/reembed/{repo}", "", content_type="application/json")
    assert answer.status_code == 202
    queue.drain()
    root.refresh_from_db()
    assert str(root.last_run_id) == answer.json()["runId"]
    assert (root.name, root.description, root.generation) == ("lighthouse", "Ships", 2)
    assert len(chunk_ids(root)) == root.chunks


def test_a_root_that_became_blank_answers_nothing_any_more(repo: Path, index: None) -> None:
    root = ingest(repo)
    for file in repo.rglob("*.*"):
        file.write_text("\n") if file.is_file() else None
    run = run_ingest(repo, "lighthouse")
    assert (run.state, run.message) == ("skipped", "Removed vectors for 4 deleted file(s)")
    root.refresh_from_db()
    assert (root.chunks, len(chunk_ids(root))) == (0, 0)
    assert queries.index_lock() is None


@pytest.mark.fault("The disk is full")
def test_a_failed_reembed_keeps_the_old_answers(
    client: Client, repo: Path, index: None, contents: Callable[[Root], dict[str, str]]
) -> None:
    root = ingest(repo, "lighthouse")
    before = contents(root)
    for file in repo.rglob("*.*"):
        file.unlink() if file.is_file() else None
    run = run_ingest(repo, "renamed")
    assert run.state == "error"
    root.refresh_from_db()
    assert contents(root) == before
    (row,) = client.get("/ingest/roots").json()["roots"]
    assert (row["name"], row["status"]) == ("lighthouse", "error")
    assert row["lastError"] == f"No eligible files found in {repo}"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (NotFound("Missing"), "Missing"),
        (InvalidInput("Too large: over 1 MB"), "Too large: over 1 MB"),
    ],
)
def test_a_file_that_goes_between_discovery_and_reading_is_skipped_with_its_reason(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    def read(root: Path, path: str, *opened: object) -> bytes:
        if path == "src/retry.py":
            raise error
        return read_file(root, path)

    monkeypatch.setattr("apps.ingest.runs.batches.read_content", read)
    root = ingest(repo)
    assert (root.files, root.skipped) == (3, 2)
    (missing,) = queries.live_files(root).skipped().filter(path="src/retry.py")
    assert missing.skip_reason == reason
    assert not any(chunk.facts.path == "src/retry.py" for chunk in chunks_of(root))


def test_the_first_batch_is_small_and_the_others_have_at_least_so_many_files(
    folder: Path, index: None, monkeypatch: pytest.MonkeyPatch, configure: Callable[..., None]
) -> None:
    configure(ingest_flush_every=3)
    monkeypatch.setattr("apps.ingest.runs.batches.ROWS_PER_WRITE", 1)
    monkeypatch.setattr("apps.ingest.runs.batches.READ_AT_ONCE", 1)
    adds: list[int] = []
    real = PartWriter.add

    def noting(self: PartWriter, files: Any, records: Any, vectors: Any) -> None:
        adds.append(len(records))
        real(self, files, records, vectors)

    monkeypatch.setattr(PartWriter, "add", noting)
    root = ingest(write_files(folder, {f"f{i}.py": f"def f{i}():\n    pass\n" for i in range(8)}))
    assert adds == [1, 3, 3, 1]
    assert (root.files, root.chunks, len(chunk_ids(root))) == (8, 8, 8)


def test_removing_frees_name_path_and_lock(client: Client, repo: Path, index: None) -> None:
    ingest(repo)
    answer = client.post(f"/ingest/remove/{repo}", "", content_type="application/json")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "unlocked": True})
    sweep.sweep()
    assert not parts_on_disk()
    assert not SourceFile.objects.exists()
    assert client.get("/ingest/roots").json() == {"roots": [], "lockedModelId": None}
    second = client.post(f"/ingest/remove/{repo}", "", content_type="application/json")
    assert second.status_code == 404
    assert ingest(repo).generation == 1


def test_the_lock_stays_while_another_root_has_chunks(
    folder: Path, repo: Path, index: None
) -> None:
    ingest(repo)
    other = ingest(write_files(folder / "other", {"o.py": "o = 1\n"}), "other")
    assert services.remove(other.path) is False
    assert queries.locked_model() == MODEL_ID
    assert services.remove(str(repo)) is True


def test_bulk_reembeds_wait_for_each_other(folder: Path, index: None) -> None:
    roots = [
        ingest(write_files(folder / name, {f"{name}.py": f"{name} = 1\n"}), name) for name in "ab"
    ]
    for root in roots:
        outdate(root)
    runs = submit.queue_reembeds([root.id for root in roots])
    assert [run.name for run in runs] == ["a", "b"]
    assert submit.queue_reembeds([roots[0].id]) == []
    assert [run.id for run in queries.queued_runs()] == [run.id for run in runs]
    queue.drain()
    assert {run.state for run in IngestRun.objects.all()} == {"completed"}
    assert {root.generation for root in Root.objects.all()} == {2}
