"""What is looked at of a watched folder: no change is lost, whatever comes between."""

import os
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from apps.index.root_directory import RootDirectory
from apps.ingest.watching import look
from apps.ingest.watching.kernel import Kernel
from apps.ingest.watching.states import Folder
from apps.ingest.watching.watched import Watched
from tests.support.git import commit_all, init
from tests.support.ingested import ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

FILES = {"app.py": "def app(): ...\n", "src/two.py": "def two(): ...\n", ".gitignore": "*.log\n"}


@pytest.fixture
def watched(folder: Path) -> Watched:
    init(folder)
    write_files(folder, FILES)
    commit_all(folder)
    root = ingest(folder)
    watched = Watched(root)
    watched.folders.read(root)
    look.fresh(watched)
    assert changed(watched) == set()
    return watched


def changed(watched: Watched) -> set[str]:
    return look.changed(watched, lambda: True)


def test_a_file_that_comes_back_before_it_was_ingested_and_goes_again(watched: Watched) -> None:
    file, away = Path(watched.root.path, "src/two.py"), Path(watched.root.path).with_name("away.py")
    file.rename(away)
    assert "src/two.py" in changed(watched)
    away.rename(file)
    assert "src/two.py" not in changed(watched)
    file.rename(away)
    assert "src/two.py" in changed(watched)


@pytest.mark.parametrize("sent", [["src/two.py", "src/new.py"], []])
def test_a_look_after_runs_compares_with_what_they_have_published(
    watched: Watched, sent: list[str]
) -> None:
    """Also one that was not told what has changed, and leaves as many files."""
    file = Path(watched.root.path, "src/two.py")
    file.rename(file.with_name("new.py"))
    assert changed(watched) == {"src/", "src/two.py"}
    watched.sent = frozenset(sent)
    watched.run_published(ingest(Path(watched.root.path)))
    assert changed(watched) == set()
    file.with_name("new.py").write_text("def other(): ...\n")
    assert changed(watched) == {"src/new.py"}
    file.with_name("new.py").unlink()
    assert changed(watched) == {"src/", "src/new.py"}


def test_a_file_that_came_after_its_run_has_looked(watched: Watched) -> None:
    """Its changes are told; those of an ignored file are not."""
    watched.sent = frozenset({"src/new.py", "src/run.log"})
    write_files(Path(watched.root.path), {"src/new.py": "x = 1\n", "src/run.log": "y\n"})
    watched.run_published(watched.root)
    assert watched.folders.left_out == {"src/run.log"}


def test_a_folder_that_cannot_be_listed_hides_no_change(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = RootDirectory.entries

    def refused(self: RootDirectory, folder: str) -> Any:
        if folder == "src/":
            raise PermissionError
        return entries(self, folder)

    monkeypatch.setattr(RootDirectory, "entries", refused)
    write_files(Path(watched.root.path), {"src/new.py": "x = 1\n", "app.py": "def other(): ...\n"})
    assert changed(watched) >= {"app.py", "src/"}


def test_a_folder_that_came_before_its_parent_was_watched(watched: Watched) -> None:
    folder = Path(watched.root.path)
    (folder / "new").mkdir()
    assert watched.folders.take(watched.root, ["new/"]) == {"new/"}
    (folder / "new/deep").mkdir()
    os.utime(folder / "new", ns=(1, 1))
    assert "new/" in look.fresh(watched)
    assert {"new/", "new/deep/"} <= watched.folders.changed_at.keys()
    assert watched.folders.fresh == {"new/deep/"}


def test_an_empty_folder_that_was_there_before(watched: Watched) -> None:
    (Path(watched.root.path) / "src/empty").mkdir()
    (Path(watched.root.path) / "node_modules/empty").mkdir(parents=True)
    later = Watched(watched.root)
    later.folders.read(watched.root)
    look.fresh(later)
    assert later.folders.changed_at.keys() == {"", "src/", "src/empty/"}


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_look_at_everything_holds_up_no_edit(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, *, is_whole: bool
) -> None:
    """It may take seconds, after which the next such look waits as long. A run of the files that
    were told holds up the next one."""
    clock = SimpleNamespace(monotonic=iter([100.0, 107.0]).__next__)
    monkeypatch.setattr("apps.ingest.watching.timing.time", clock)
    watched.folder = Folder("watch", waiting=frozenset({"app.py"}), is_unknown=is_whole)
    watched.run_queued()
    watched.run_published(watched.root)
    watched.timing.run_published()
    watched.timing.told_at = watched.timing.last_told_at = 108.0
    assert watched.timing.run_at(0.0, is_whole=False) == (108.0 if is_whole else 114.0)
    assert watched.timing.run_at(0.0, is_whole=True) == 114.0


def test_names_that_are_not_utf8(watched: Watched) -> None:
    """The kernel's words end there."""
    (Path(watched.root.path) / os.fsdecode(b"new/\xff/deep")).mkdir(parents=True)
    changed(watched)
    assert {"", "src/", "new/"} == watched.folders.changed_at.keys()


def test_many_new_folders_are_one_discovery(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    entries = RootDirectory.entries

    def counted(self: RootDirectory, folder: str, **options: bool) -> Any:
        listed.append(folder)
        return entries(self, folder, **options)

    monkeypatch.setattr(RootDirectory, "entries", counted)
    new = {f"src/new{number}/" for number in range(200)}
    for name in new:
        (Path(watched.root.path) / name).mkdir()
    assert watched.folders.take(watched.root, new) == new
    assert len(listed) < 2 * len(new)


def test_what_changes_while_the_thread_is_woken_is_not_forgotten(watched: Watched) -> None:
    kernel, wake = Kernel(), Event()
    watched.folder = Folder("watch")
    assert kernel.wait([watched], wake, 0.0) == []
    file = Path(watched.root.path, "src/app.py")
    file.write_text("def written(): ...\n")
    wake.set()
    events = [event for _ in range(3) for event in kernel.wait([watched], wake, 0.0)]
    kernel.close()
    assert str(file) in {event.path for event in events}
