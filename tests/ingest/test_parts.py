"""Runs write parts and publish their list; parts are merged, and what no row lists is deleted."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.core.errors import Conflict
from apps.embedding.static import MODEL_ID
from apps.index import queries
from apps.index.changes import check_due
from apps.index.mapped import collecting, lists, lookups, part
from apps.index.mapped.collecting import collect
from apps.index.mapped.merge_plan import FAN_IN
from apps.index.mapped.opened import OpenedRoots, opened_roots
from apps.index.mapped.part import Owner
from apps.index.models import IngestRun, Installation, RemovedRoot, Root
from apps.ingest import services
from apps.ingest.runs import merging, sweep
from apps.ingest.runs.generation import Generation
from tests.support.ingested import ingest, run_ingest, write_files
from tests.support.random_parts import Sources, built

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]


@pytest.fixture(autouse=True)
def _empty() -> None:
    """Other tests have left parts of their databases."""
    shutil.rmtree(lists.folder(), ignore_errors=True)


def names(root: Root) -> list[str]:
    return [entry["name"] for entry in root.parts]


def on_disk() -> set[str]:
    return {path.stem for path in lists.folder().glob("*.part")}


def paths_of(root: Root) -> set[str]:
    """The paths of the live chunks."""
    return {
        live_part.part.files[file].path
        for live_part in lists.read(root).parts
        for file in live_part.part.file_of.tolist()
        if live_part.live[file]
    }


def edited(repo: Path, number: int) -> Root:
    return ingest(write_files(repo, {"src/more.py": f"def more():\n    return {number}\n"}))


def test_a_run_adds_one_small_part_and_says_what_is_dead(repo: Path, index: None) -> None:
    root = ingest(repo)
    first = names(root)
    assert len(first) == 1 and opened_roots.get(root).live == root.embedded
    root = edited(repo, 1)
    assert names(root)[:1] == first and len(names(root)) == 2
    assert root.parts[1]["rows"] == 1
    assert "src/more.py" in paths_of(root)
    (repo / "src/more.py").unlink()
    assert run_ingest(repo, root.name).state == "skipped"  # nothing new, and a file less
    root = queries.find_root(str(repo))
    assert names(root) == first and on_disk() == set(first)
    assert "src/more.py" not in paths_of(root)


def test_parts_of_many_small_runs_stay_few(repo: Path, index: None) -> None:
    ingest(repo)
    for number in range(2 * FAN_IN):
        write_files(repo, {f"new_{number}.py": f"def new_{number}():\n    return 1\n"})
        root = edited(repo, number)
        assert len(root.parts) < 2 * FAN_IN
        assert on_disk() == set(names(root))
        mapped = opened_roots.get(root)
        assert mapped.live == root.embedded
        defining = lookups.definitions(mapped.parts, "more")
        assert [symbol.file_path for symbol in defining] == ["src/more.py"]
    assert {f"new_{number}.py" for number in range(2 * FAN_IN)} <= paths_of(root)


def test_a_generation_that_is_not_published_leaves_the_list_and_its_file_goes(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)
    write_files(repo, {"src/more.py": "def more():\n    return 1\n"})

    def refuse(self: Generation, *_: object) -> None:
        assert len(on_disk()) == 2
        collect()  # by another process: the run is live
        assert len(on_disk()) == 2
        raise Conflict("removed meanwhile")

    monkeypatch.setattr(Generation, "publish", refuse)
    assert run_ingest(repo, root.name).state == "error"
    assert names(queries.find_root(str(repo))) == names(root)
    collect()
    assert on_disk() == set(names(root))


@pytest.mark.fault("The disk is full")
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_part_that_cannot_be_written_fails_the_run(
    repo: Path, index: None, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    root = ingest(repo)

    def fail(*args: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(part, "write", fail)
    write_files(repo, {"src/more.py": "def more():\n    return 1\n"})
    run = run_ingest(repo, root.name)
    assert run.state == "error"
    assert run.error_code == ("DISK_FULL" if number == errno.ENOSPC else "INDEX_UNAVAILABLE")
    now = queries.find_root(str(repo))
    assert (now.generation, names(now)) == (root.generation, names(root))


@pytest.mark.fault("A part of the index is lost")
def test_a_run_makes_again_what_no_part_has(repo: Path, index: None) -> None:
    root = ingest(repo)
    paths = paths_of(root)
    part.path_of(lists.folder(), names(root)[0]).unlink()
    root = ingest(repo)
    assert (paths_of(root), root.damage) == (paths, "")


# --- merging --------------------------------------------------------------------------------------


@pytest.fixture
def unmerged(repo: Path, index: None, monkeypatch: pytest.MonkeyPatch) -> Root:
    """A root with parts that are due to be merged."""
    with monkeypatch.context() as patch:
        patch.setattr(merging, "plan", lambda sizes: [])
        ingest(repo)
        for number in range(FAN_IN):
            write_files(repo, {f"new_{number}.py": f"def new_{number}():\n    return 1\n"})
            root = edited(repo, number)
    return root


def test_a_merge_changes_no_answer(unmerged: Root) -> None:
    paths, before = paths_of(unmerged), on_disk()
    merging.merge_after_run(unmerged.path)
    root = queries.find_root(unmerged.path)
    assert root.revision > unmerged.revision and root.generation == unmerged.generation
    assert (len(root.parts), paths_of(root)) == (2, paths)
    assert on_disk() == set(names(root)) != before


def test_a_reader_of_the_list_before_a_merge_finds_the_parts_of_the_one_after(
    unmerged: Root,
) -> None:
    merging.merge_after_run(unmerged.path)
    mapped = OpenedRoots().get(unmerged)
    assert (list(mapped.lost), mapped.live) == ([], unmerged.embedded)


def test_a_merge_gives_way_to_what_is_published_meanwhile(
    unmerged: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def published(pieces: Any, store: UUID) -> Any:
        Root.objects.filter(id=unmerged.id).update(generation=unmerged.generation + 1)
        return merged(pieces, store)

    merged = merging.merging.merged
    monkeypatch.setattr(merging.merging, "merged", published)
    merging.merge(unmerged.path)
    root = Root.objects.get(id=unmerged.id)
    assert (names(root), root.revision) == (names(unmerged), unmerged.revision)


@pytest.mark.fault("A part of the index is lost")
def test_damage_is_not_merged(unmerged: Root) -> None:
    path = part.path_of(lists.folder(), names(unmerged)[-1])
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    check_due.clear()
    merging.merge_after_run(unmerged.path)
    assert check_due.is_set()
    assert names(Root.objects.get(id=unmerged.id)) == names(unmerged)


# --- collecting -----------------------------------------------------------------------------------


@pytest.fixture
def written() -> Callable[..., str]:
    """Write a part that no root lists, and return its name."""
    sources = Sources(Random(1))

    def write(owner: Owner) -> str:
        return part.write(lists.folder(), built([sources.source(2, 0)]), owner).name

    return write


def owner(installation: str, root: UUID, run: str) -> Owner:
    return Owner(installation, root.hex, run, "/ships", "ships", MODEL_ID)


@pytest.mark.fault("The database is lost or replaced")
def test_what_is_not_known_to_be_ours_stays(
    repo: Path, index: None, written: Callable[..., str]
) -> None:
    root = ingest(repo)
    uid, run = str(Installation.objects.get().uid), uuid4().hex
    foreign = written(owner(str(uuid4()), root.id, run))
    unknown = written(owner(uid, uuid4(), run))
    own = written(owner(uid, root.id, run))
    collect()
    assert {path.stem for path, _ in collecting.unknown()} == {foreign, unknown}
    assert on_disk() == {foreign, unknown, *names(root)}
    assert own not in on_disk()


def test_what_a_live_run_or_a_merge_is_about_to_list_stays(
    repo: Path, index: None, written: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)
    uid = str(Installation.objects.get().uid)
    run = IngestRun.objects.get()
    of_run, of_merge = (written(owner(uid, root.id, key)) for key in (run.id.hex, ""))
    IngestRun.objects.update(state="embedding")
    collect()
    assert {of_run, of_merge} <= on_disk()
    half = lists.folder() / "half.tmp"
    half.write_bytes(b"half")
    IngestRun.objects.update(state="completed")
    collect()
    assert (of_run in on_disk(), of_merge in on_disk(), half.exists()) == (False, True, True)
    monkeypatch.setattr(collecting, "MERGE_SECONDS", -1)
    collect()
    assert (of_merge in on_disk(), half.exists()) == (False, False)


def test_what_cannot_be_read_and_no_root_lists_goes(
    repo: Path, index: None, written: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)
    uid = str(Installation.objects.get().uid)
    damaged = part.path_of(lists.folder(), written(owner(uid, root.id, uuid4().hex)))
    damaged.write_bytes(damaged.read_bytes()[:-20])
    collect()
    assert damaged.exists()  # perhaps another process writes it
    monkeypatch.setattr(collecting, "MERGE_SECONDS", -1)
    collect()
    assert on_disk() == set(names(root))


def test_the_parts_of_a_removed_root_go(repo: Path, index: None) -> None:
    root = ingest(repo)
    services.remove(root.path)
    sweep.sweep()
    assert on_disk() == set()
    assert RemovedRoot.objects.filter(root_id=root.id).exists()


def test_the_merged_parts_of_a_removed_root_go_at_once(unmerged: Root) -> None:
    merging.merge_after_run(unmerged.path)
    services.remove(unmerged.path)
    sweep.sweep()
    assert on_disk() == set()
