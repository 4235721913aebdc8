"""What the pages say of files that changed on disk after they were ingested."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.index.models import Root
from apps.ingest import freshness
from apps.ingest.freshness import compare
from tests.support.ingested import ingest, ingest_sample, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]


@pytest.fixture
def root(folder: Path) -> Root:
    return ingest_sample(folder)


def touch(folder: Path) -> None:
    """Another time and the same content."""
    for file in folder.rglob("*.py"):
        os.utime(file, ns=(1, 1))


def same_size(folder: Path) -> None:
    file = folder / "main.txt"
    file.write_text(file.read_text().upper())


def one_gone(folder: Path) -> None:
    (folder / "src/retry.py").unlink()


def three(folder: Path) -> None:
    one_gone(folder)
    same_size(folder)
    (folder / "README.md").write_text("# Another\n")


def link(folder: Path) -> None:
    (folder / "main.txt").unlink()
    (folder / "main.txt").symlink_to("README.md")


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda folder: None, ""),
    "other times": (touch, ""),
    "a new file": (lambda folder: write_files(folder, {"new.py": "x = 1\n"}), ""),
    "a skipped file": (lambda folder: (folder / "package-lock.json").unlink(), ""),
    "same size": (same_size, "1 file changed"),
    "a file is gone": (one_gone, "1 file changed"),
    "a link in its place": (link, "1 file changed"),
    "three files": (three, "3 files changed"),
    "no folder": (shutil.rmtree, "Folder is gone"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_counted(root: Root, change: str) -> None:
    make, expected = CHANGES[change]
    make(Path(root.path))
    assert str(compare(root)) == expected


def test_a_file_in_place_of_the_folder_is_no_folder(root: Root) -> None:
    shutil.rmtree(root.path)
    Path(root.path).write_text("")
    assert str(compare(root)) == "Folder is gone"


def test_after_another_ingest_nothing_has_changed(root: Root) -> None:
    three(Path(root.path))
    assert str(compare(ingest(Path(root.path), root.name))) == ""


def test_what_the_time_did_not_suffice_for_is_not_claimed(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    three(Path(root.path))
    times = iter([0.0, 1.0, 2.0, 1e9])
    monkeypatch.setattr(freshness.time, "monotonic", lambda: next(times))
    assert str(compare(root)).startswith("At least ")
