"""A folder that is ingested again: only what differs is cut and embedded, and the index is the same
as if all had been."""

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.test import Client

from apps.embedding.static import StaticCodeEmbedder
from apps.index import queries
from apps.index.models import Root, SourceFile
from apps.index.parsing import Chunker
from apps.index.symbols import outline_of
from apps.ingest.discovery import discovery
from apps.ingest.runs import delta, queue
from apps.ingest.runs.chunker_version import CHUNKER_VERSION
from tests.code.language_samples import SAMPLES
from tests.ingest.stages import Nth, hook
from tests.support.index import chunks_of, first_is_zero
from tests.support.ingested import files_of, ingest, ingest_alone, outdate, run_ingest, write_files
from tests.support.parts import chunk_ids, lose_parts

pytestmark = [pytest.mark.django_db, pytest.mark.door]

ALL_CUT = {"README.md", "main.txt", "src/retry.py", "src/store.js"}


@pytest.fixture
def nothing_is_young(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the files of a test had been there for long: their times are trusted."""
    monkeypatch.setattr(discovery, "SETTLE_NS", -(10**12))


def rows_of(root: Root) -> set[Any]:
    return set(queries.live_files(root).values_list("id", flat=True))


def test_nothing_is_done_where_nothing_has_changed(
    client: Client, repo: Path, index: None, embedded: list[str]
) -> None:
    root = ingest(repo, "lighthouse")
    rows, ids = rows_of(root), chunk_ids(root)
    embedded.clear()
    run = run_ingest(repo, "renamed", description="Ships")
    assert (run.state, run.message) == ("skipped", "No changes detected")
    assert (run.files, run.chunks, run.embedded, run.skipped) == (0, 0, 0, 1)
    assert run.unchanged == 4
    assert embedded == []
    assert (rows_of(root), chunk_ids(root)) == (rows, ids)
    before = root.last_ingest_at
    root.refresh_from_db()
    # What is held in memory of this generation stays; what the run was told is kept.
    assert (root.generation, root.name, root.description) == (1, "renamed", "Ships")
    assert (root.last_run_id, root.last_state) == (run.id, "completed")
    assert before is not None and root.last_ingest_at is not None and root.last_ingest_at > before
    (wire_root,) = client.get("/ingest/roots").json()["roots"]
    assert wire_root["counts"] == {
        "files": 4,
        "chunks": root.chunks,
        "embedded": root.chunks,
        "skipped": 1,
    }


@pytest.mark.parametrize("few", [delta.MAX_PATHS_IN_QUERY, 1], ids=["few", "many"])
def test_new_and_changed_files_are_embedded_and_missing_ones_deleted(
    folder: Path,
    repo: Path,
    index: None,
    embedded: list[str],
    contents: Callable[[Root], dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    few: int,
) -> None:
    monkeypatch.setattr(delta, "MAX_PATHS_IN_QUERY", few)
    root = ingest(repo)
    (repo / "main.txt").unlink()
    write_files(repo, {"src/retry.py": "def changed() -> None:\n    pass\n", "new.md": "# New\n"})
    embedded.clear()
    run = run_ingest(repo)
    assert (run.state, run.files) == ("completed", 2)
    assert set(embedded) == {"src/retry.py", "new.md"}
    clean = ingest_alone(write_files(folder / "copy", files_of(repo)), "copy")
    assert contents(root) == contents(clean)
    root.refresh_from_db()
    assert (root.files, root.chunks, root.embedded, root.skipped) == (
        clean.files,
        clean.chunks,
        clean.embedded,
        clean.skipped,
    )
    assert len(chunk_ids(root)) == root.chunks
    (retry,) = queries.live_files(root).filter(path="src/retry.py")
    assert [symbol.name for symbol in outline_of(root, retry.document)] == ["changed"]


def test_only_deleted_files_are_reported(repo: Path, index: None) -> None:
    root = ingest(repo)
    (repo / "main.txt").unlink()
    run = run_ingest(repo)
    assert (run.state, run.message) == ("skipped", "Removed vectors for 1 deleted file(s)")
    root.refresh_from_db()
    assert (root.files, len(chunk_ids(root))) == (3, root.chunks)


def test_a_file_that_was_touched_but_not_changed_is_not_embedded(
    repo: Path, index: None, embedded: list[str], nothing_is_young: None
) -> None:
    ingest(repo)
    os.utime(repo / "main.txt", ns=(1, 1))
    embedded.clear()
    assert run_ingest(repo).message == "No changes detected"
    assert embedded == []


@pytest.mark.parametrize("young", [True, False])
def test_another_content_of_the_same_size_and_time_is_seen(
    repo: Path, index: None, embedded: list[str], request: pytest.FixtureRequest, young: bool
) -> None:
    if not young:
        request.getfixturevalue("nothing_is_young")
    path = repo / "main.txt"
    os.utime(path, ns=(1, 1))
    ingest(repo)
    path.write_bytes(path.read_bytes().swapcase())
    os.utime(path, ns=(1, 1))
    embedded.clear()
    assert run_ingest(repo).state == "completed"
    assert set(embedded) == {"main.txt"}


def test_unchanged_files_are_not_opened(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch, nothing_is_young: None
) -> None:
    ingest(repo)
    opened: list[str] = []
    real = discovery.RootDirectory.open

    def noting(self: discovery.RootDirectory, path: str) -> Any:
        opened.append(path)
        return real(self, path)

    monkeypatch.setattr(discovery.RootDirectory, "open", noting)
    write_files(repo, {"new.md": "# New\n"})
    run_ingest(repo)
    assert set(opened) == {"new.md"}


def test_a_file_may_come_to_be_skipped_and_back(repo: Path, index: None) -> None:
    text = (repo / "main.txt").read_text()
    root = ingest(repo)
    write_files(repo, {"main.txt": b"\0\1\2"})
    run = run_ingest(repo)
    reasons = {"main.txt": "Binary", "package-lock.json": "Generated"}
    assert dict(queries.listed_by(run).skipped().values_list("path", "skip_reason")) == reasons
    root.refresh_from_db()
    assert (root.files, root.skipped) == (3, 2)
    write_files(repo, {"main.txt": text})
    run = run_ingest(repo)
    assert [file.path for file in queries.listed_by(run).skipped()] == ["package-lock.json"]
    root.refresh_from_db()
    assert (root.files, root.skipped) == (4, 1)
    assert SourceFile.objects.filter(root=root).count() == 5


@pytest.mark.parametrize(
    "lose",
    [lose_parts, outdate],
    ids=["parts lost", "cut by another version"],
)
def test_chunks_that_cannot_stay_are_made_again(
    repo: Path,
    index: None,
    embedded: list[str],
    contents: Callable[[Root], dict[str, str]],
    lose: Callable[[Root], None],
) -> None:
    root = ingest(repo)
    before = contents(root)
    lose(root)
    embedded.clear()
    assert run_ingest(repo).state == "completed"
    assert set(embedded) == ALL_CUT
    assert contents(root) == before
    embedded.clear()
    assert run_ingest(repo).message == "No changes detected"


def test_changed_ingest_rules_chunk_all_files_again(
    repo: Path, index: None, embedded: list[str], configure: Callable[..., None]
) -> None:
    ingest(repo)
    embedded.clear()
    configure(ingest_include=("py", "md"))
    root = ingest(repo)
    assert set(embedded) == {"README.md", "src/retry.py"}
    assert root.files == 2


def test_chunks_without_a_vector_stay_counted_out(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(StaticCodeEmbedder, "embed_documents", first_is_zero)
        ingest(repo)
    write_files(repo, {"new.md": "# New\n"})
    root = ingest(repo)
    assert root.embedded == root.chunks - 1
    assert root.chunks == len(chunk_ids(root)) == len(chunks_of(root))
    assert run_ingest(repo).message == "No changes detected"


def test_a_changed_file_without_a_usable_vector_does_not_fail_the_run(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(repo)
    write_files(repo, {"main.txt": "...\n"})
    monkeypatch.setattr(
        StaticCodeEmbedder, "embed_documents", lambda self, texts: np.zeros((len(texts), 256), "f4")
    )
    run = run_ingest(repo)
    assert (run.state, run.chunks, run.embedded) == ("completed", 1, 0)
    root = queries.find_root(str(repo))
    assert root.embedded + 1 == root.chunks == len(chunk_ids(root))


def test_a_dry_run_counts_what_would_be_embedded(repo: Path, index: None) -> None:
    root = ingest(repo)
    write_files(repo, {"new.md": "# New\n"})
    run = run_ingest(repo, dry_run=True)
    assert (run.state, run.files, run.embedded, run.skipped) == ("completed", 1, 1, 1)
    assert [file.path for file in queries.listed_by(run).skipped()] == ["package-lock.json"]
    assert len(chunk_ids(root)) == root.chunks


def test_hashing_many_files_can_be_cancelled(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = f"value = {'1 + ' * discovery.SCAN_BYTES}1\n"
    ingest(write_files(repo, {"a.txt": large, "b.txt": large}))
    read: list[str] = []

    def reading(folder: Path, path: str, encoding: str) -> str:
        read.append(path)
        (job,) = queue.jobs.values()
        job.cancel()
        return ""

    monkeypatch.setattr(delta, "digest_at", reading)
    assert run_ingest(repo).state == "cancelled"
    assert len(read) == 1


def test_a_failed_run_leaves_the_published_chunks(
    repo: Path, index: None, contents: Callable[[Root], dict[str, str]], monkeypatch: Any
) -> None:
    root = ingest(repo)
    before = contents(root)
    write_files(repo, {"new.md": "# New\n", "main.txt": "Other words.\n"})

    def fail() -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        hook("publishing", Nth(1, fail), patch.setattr)
        assert run_ingest(repo).state == "error"
    assert contents(root) == before
    assert len(chunk_ids(root)) == len(before)
    assert run_ingest(repo).files == 2


@pytest.mark.door
def test_who_changes_how_files_are_cut_raises_the_number_of_it() -> None:
    """Chunks of another look must not stand beside those that stay. A language that was not
    ingested before has none: its sample is at the end of the list."""
    count, expected = 43, {10: "3fd2336ef7d21b5a"}
    samples = [(sample.path, sample.source.encode()) for sample in SAMPLES[:count]]
    with Chunker(parse_seconds=30) as chunker:
        cut = chunker.chunk_many(samples)
    assert {CHUNKER_VERSION: sha256(repr(cut).encode()).hexdigest()[:16]} == expected
