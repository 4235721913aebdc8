"""Whose parts they are: what no row tells of stays, and everybody is told."""

import io
import logging
import os
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from apps.index.installation import installation_id
from apps.index.mapped import lists, part
from apps.index.mapped.part import Owner
from apps.index.models import IngestRun, Installation, RemovedRoot, Root
from apps.ingest import services
from apps.ingest.runs import orphans, queue, sweep
from tests.support.ingested import SAMPLE, ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def forget(root: Root) -> None:
    """As if the database had never known this root."""
    Root.objects.filter(id=root.id).delete()
    RemovedRoot.objects.all().delete()


def forget_all(root: Root) -> None:
    """As another database does."""
    forget(root)
    Installation.objects.all().delete()


def be_another(root: Root) -> None:
    """As a copy of the database that has become an installation of its own."""
    Root.objects.filter(id=root.id).delete()
    Installation.objects.all().delete()


def parts_of(root: Root) -> list[Path]:
    return [part.path_of(lists.folder(), entry["name"]) for entry in root.parts]


def test_an_ingest_writes_whose_it_is(repo: Path, index: None) -> None:
    root = ingest(repo, name="ships")
    (path,) = parts_of(root)
    run = IngestRun.objects.get().id.hex
    expected = Owner(installation_id(), root.id.hex, run, str(repo), "ships", root.model)
    assert part.provenance_of(path)[0] == expected
    assert installation_id() == str(Installation.objects.get().uid)


@pytest.mark.fault("The database is lost or replaced")
@pytest.mark.parametrize("lose", [forget, forget_all, be_another])
def test_parts_that_no_row_tells_of_stay_and_are_reported(
    repo: Path, index: None, caplog: pytest.LogCaptureFixture, lose: Callable[[Root], None]
) -> None:
    root = ingest(repo, name="ships")
    lose(root)
    with caplog.at_level(logging.WARNING, "codeinfo.ingest"):
        sweep.sweep()
    assert all(path.exists() for path in parts_of(root))
    (orphan,) = orphans.find()
    named = (root.id, str(repo), "ships", root.model)
    assert (orphan.root, orphan.path, orphan.name, orphan.model) == named
    assert str(root.id) in str([record.__dict__ for record in caplog.records])


@pytest.mark.fault("The database is lost or replaced")
def test_a_part_that_another_folder_lists_is_no_orphan(repo: Path, index: None) -> None:
    root = ingest(repo)
    twin = ingest(write_files(repo.parent / "twin", SAMPLE))
    assert parts_of(twin) == parts_of(root)
    forget(root)
    sweep.sweep()
    assert not orphans.find()
    assert all(path.exists() for path in parts_of(twin))


def test_an_orphan_has_the_name_of_its_latest_part(repo: Path, index: None) -> None:
    root = ingest(repo, name="boats")
    (old,) = parts_of(root)
    os.utime(old, (1, 1))
    write_files(repo, {"new.py": "def fresh() -> int:\n    return 1\n"})
    forget(ingest(repo, name="ships"))
    assert [each.name for each in orphans.find()] == ["ships"]


@pytest.mark.fault("The database is lost or replaced")
def test_the_command_drops_what_it_names_and_nothing_that_is_in_use(
    repo: Path, index: None
) -> None:
    gone = ingest(write_files(repo.parent / "gone", {"a.py": "def a() -> int:\n    return 1\n"}))
    other = ingest(write_files(repo.parent / "other", {"b.py": "def b() -> int:\n    return 1\n"}))
    root = ingest(repo)
    for each in (gone, other):
        forget(each)
    with pytest.raises(CommandError, match="drop_index deletes only"):
        call_command("drop_index", str(gone.id), str(root.id))
    with pytest.raises(CommandError, match="No index"):
        call_command("drop_index", str(uuid4()))
    with pytest.raises(CommandError, match="not the id"):
        call_command("drop_index", "lighthouse")
    assert parts_of(gone)[0].exists()
    out = io.StringIO()
    call_command("drop_index", str(gone.id), stdout=out)
    assert out.getvalue() == f"Deleted {gone.path} ({gone.id}): 1 file.\n"
    left = [path.exists() for each in (gone, other, root) for path in parts_of(each)]
    assert left == [False, True, True]


def test_orphaned_folders_are_ingested_again(repo: Path, index: None) -> None:
    root = ingest(repo, name="ships")
    forget(root)
    sweep.sweep()
    services.ingest_again([each.root for each in orphans.find()])
    queue.drain()
    again = Root.objects.get()
    assert (again.path, again.name, again.last_state) == (str(repo), "ships", "completed")
    assert not orphans.unknown_folders()
    # What stood before is left to the command.
    sweep.sweep()
    assert [each.root for each in orphans.find()] == [root.id]
    assert parts_of(root)[0].exists()


def test_orphans_are_offered_and_dropped_whichever_process_sweeps(repo: Path, index: None) -> None:
    root = ingest(repo)
    forget(root)
    assert [each.root for each in orphans.unknown_folders()] == [root.id]
    call_command("drop_index", str(root.id), stdout=io.StringIO())
    assert not orphans.unknown_folders() and not orphans.find()
