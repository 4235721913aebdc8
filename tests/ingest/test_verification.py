"""`verify` finds every way in which rows, parts and folder may differ, and no other."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.db.models import F

from apps.core.errors import NotFound
from apps.index import queries
from apps.index.mapped.definitions import Definitions
from apps.index.mapped.part import Part
from apps.index.models import IndexLock, IngestRun, RemovedRoot, Root, SourceFile
from apps.index.texts import get_texts
from apps.ingest.runs.job import RunCancelled
from apps.ingest.verification import rows
from apps.ingest.verification.compare import verify_root
from tests.ingest.stages import Nth, hook
from tests.support.index import first_is_zero
from tests.support.ingested import ingest, outdate, write_files
from tests.support.parts import lose_parts, rewrite_part, spoil_part
from tests.support.verification import verify

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def kinds(root: Root | None = None, **options: Any) -> set[str]:
    return {each.kind for each in verify(**options) if root is None or each.root == root.path}


def test_an_intact_index_has_no_differences_and_counts_what_was_compared(
    repo: Path, index: None
) -> None:
    root = ingest(repo)
    assert verify(source=True) == []
    found = verify_root(root, source=True)
    assert found.rows == found.files == found.parsed == 4
    assert found.chunks == found.indexed == root.chunks > 0
    assert not found.notes


def test_chunks_without_a_direction_are_no_difference(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.embedding.static.StaticCodeEmbedder.embed_documents", first_is_zero)
    root = ingest(repo)
    assert root.embedded < root.chunks
    assert verify(source=True) == []


def test_a_lost_part_is_found(repo: Path, index: None) -> None:
    root = ingest(repo)
    lose_parts(root)
    assert kinds() == {"index_unreadable"}


def test_a_part_with_a_changed_byte_is_found(repo: Path, index: None) -> None:
    root = ingest(repo)
    spoil_part(root)
    assert kinds() == {"index_unreadable"}


def other_lines(part: Part) -> Part:
    return replace(part, columns=part.columns._replace(begins=part.columns.begins + np.uint32(1)))


def other_hashes(part: Part) -> Part:
    return replace(part, columns=part.columns._replace(hashes=part.columns.hashes ^ np.uint8(1)))


@pytest.mark.fault("Rows, parts and folders disagree")
def test_a_part_that_no_root_lists_any_more_is_missed(repo: Path, index: None) -> None:
    root = ingest(repo)
    Root.objects.update(parts=[])
    (found,) = verify()
    assert (found.root, found.kind) == (root.path, "index_differs")
    assert "too few or too many chunks, 4: " in found.detail and " (0 of 1)" in found.detail


@pytest.mark.fault("Rows, parts and folders disagree")
def test_a_file_of_the_index_that_no_row_names_is_found(repo: Path, index: None) -> None:
    root = ingest(repo)
    SourceFile.objects.filter(root=root, path="src/store.js").delete()
    details = [each.detail for each in verify() if each.kind == "index_differs"]
    assert details == ["files in the index that no row names, 1: src/store.js"]


@pytest.mark.fault("Rows, parts and folders disagree")
@pytest.mark.parametrize("change", [other_lines, other_hashes])
def test_a_part_that_says_something_else_is_found(
    repo: Path, index: None, change: Callable[[Part], Part]
) -> None:
    root = ingest(repo)
    rewrite_part(root, change)
    assert kinds() == {"index_differs"}


@pytest.mark.fault("Rows, parts and folders disagree")
def test_damaged_spans_of_a_row_are_found(repo: Path, index: None) -> None:
    root = ingest(repo)
    SourceFile.objects.filter(root=root, path="src/store.js").update(spans=b"none")
    assert kinds() == kinds(source=True) == {"index_differs"}


def test_a_lost_text_is_found(repo: Path, index: None) -> None:
    root = ingest(repo)
    get_texts().discard([queries.live_files(root).ingested()[0].sha256], lambda keys: ())
    (found,) = verify()
    assert (found.kind, "files without their text, 1: " in found.detail) == ("texts_missing", True)


def test_counts_that_the_rows_do_not_bear_out_are_found(repo: Path, index: None) -> None:
    root = ingest(repo)
    Root.objects.update(chunks=99, skipped=7)
    found = [each.detail for each in verify()]
    assert found == [
        "skipped: the root says 7, its rows 1",
        f"chunks: the root says 99, its rows {root.chunks}",
    ]


def test_a_lock_that_does_not_fit_is_found(repo: Path, index: None) -> None:
    root = ingest(repo)
    IndexLock.objects.update(dimension=3)
    assert kinds() == {"lock"}
    IndexLock.objects.update(model="openai:other")
    assert kinds() == {"lock"}
    IndexLock.objects.all().delete()
    (found,) = verify()
    assert (found.root, found.kind) == (root.path, "lock")
    Root.objects.all().delete()
    IndexLock.objects.create(model="openai:other", dimension=3)
    assert kinds() == {"lock"}


def test_an_index_without_a_root_is_found(repo: Path, index: None) -> None:
    root = ingest(repo)
    Root.objects.all().delete()
    IndexLock.objects.all().delete()
    # The next sweep removes it.
    assert verify() == []
    # A database that never knew it.
    RemovedRoot.objects.all().delete()
    (found,) = verify()
    assert (found.root, found.kind) == (str(root.id), "orphan")
    assert str(repo) in found.detail


def test_data_that_a_sweep_removes_is_harmless(repo: Path, index: None) -> None:
    root = ingest(repo)
    row = SourceFile.objects.live().ingested()[0]
    SourceFile.objects.create(
        root=root, run=row.run, path="b.py", chunks=1, spans=row.spans, since=99
    )
    (found,) = verify()
    assert (found.kind, found.is_harmless) == ("left_over", True)


@pytest.mark.fault("Rows, parts and folders disagree")
def test_the_folder_is_compared_where_it_is_asked_for(repo: Path, index: None) -> None:
    root = ingest(repo)
    write_files(repo, {"src/new.py": "x = 1\n", "src/retry.py": "def other() -> None: ...\n"})
    (repo / "README.md").unlink()
    (repo / "main.txt").write_bytes(b"\0" * 100)
    assert verify() == []
    details = {each.kind: each.detail for each in verify(source=True)}
    assert details.keys() == {"file_new", "file_changed", "file_missing"}
    assert "src/new.py" in details["file_new"] and "README.md" in details["file_missing"]
    both = [each.detail for each in verify(source=True) if each.kind == "file_changed"]
    assert any("src/retry.py" in each for each in both) and any("main.txt" in e for e in both)
    repo.rename(repo.with_name("elsewhere"))
    assert kinds(root, source=True) == {"folder_missing"}


def test_a_file_that_was_not_parsed_as_it_would_be_today_is_found(repo: Path, index: None) -> None:
    root = ingest(repo)
    file = queries.live_files(root).get(path="src/store.js")

    def without_definitions(part: Part) -> Part:
        (place,) = part.places[str(file.document)]
        lines = part.definitions.rows.lines(int(part.definitions.bounds[-1]))
        of_files = [
            [lines[number] for number in part.definitions.of_file(each) if each != place]
            for each in range(len(part.files))
        ]
        declared = part.definitions.names[: part.columns.ends[-1]].tobytes()
        return replace(part, definitions=Definitions.of(of_files, declared))

    rewrite_part(root, without_definitions)
    (found,) = verify(source=True)
    expected = f"files with other definitions than the index has, 1: {file.path}"
    assert (found.kind, found.detail) == ("index_differs", expected)
    SourceFile.objects.filter(id=file.id).update(problem="Its parser ended")
    assert kinds(source=True) == {"file_problem"}


def test_a_comparison_beside_a_run_finds_nothing(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)
    outdate(root)
    checked: list[Any] = []
    hook("publishing", Nth(1, lambda: checked.append(verify(source=True))), monkeypatch.setattr)
    ingest(repo)
    assert checked == [[]]
    assert verify(source=True) == []


@pytest.mark.parametrize(
    "changed",
    [lambda: {"last_run_id": uuid4()}, lambda: {"revision": F("revision") + 1}],
    ids=["published", "merged"],
)
def test_a_root_that_changes_during_the_comparison_is_compared_again(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch, changed: Callable[[], Any]
) -> None:
    root = ingest(repo)
    live, times = rows.live_rows, []

    def changing(root: Root, most: int) -> Any:
        times.append(1)
        found = live(root)
        if len(times) <= most:
            Root.objects.update(**changed())
        return found

    monkeypatch.setattr(rows, "live_rows", lambda root: changing(root, 1))
    assert kinds() == set() and len(times) == 2
    times.clear()
    monkeypatch.setattr(rows, "live_rows", lambda root: changing(root, 9))
    assert kinds(root) == {"unsettled"}


def test_roots_are_chosen_by_path_or_name_and_unknown_ones_refused(repo: Path, index: None) -> None:
    root = ingest(repo, name="ships")
    other = ingest(write_files(repo.parent / "other", {"a.py": "def a() -> int:\n    return 1\n"}))
    Root.objects.update(chunks=99)
    assert {each.root for each in verify(roots=[root.path])} == {root.path}
    assert {each.root for each in verify(roots=["ships"])} == {root.path}
    assert {each.root for each in verify()} == {root.path, other.path}
    with pytest.raises(NotFound):
        verify(roots=["nowhere"])


def test_it_is_cancelled_between_slices(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(repo)

    def stop() -> None:
        raise RunCancelled

    with pytest.raises(RunCancelled):
        verify(check=stop)


def test_a_root_that_waits_for_another_model_lacks_nothing(repo: Path, index: None) -> None:
    root = ingest(repo)
    IndexLock.objects.update(model="openai:other", dimension=3)
    lose_parts(root)
    assert kinds() == {"lock"}
    IngestRun.objects.create(operation="reembed", path=root.path, name=root.name)
    assert kinds() == set()
    assert "waits to be embedded" in verify_root(root).notes[0]
