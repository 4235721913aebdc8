"""`read_file` reads regular files below a root and nothing else."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.core.errors import InvalidInput, NotFound
from apps.index import root_directory
from apps.index.root_directory import read_file


def test_it_reads_the_bytes_as_they_are(folder: Path) -> None:
    (folder / "a b").mkdir()
    (folder / "a b" / "c.py").write_bytes(b"\xef\xbb\xbfx\r\n\xff")
    assert read_file(folder, "a b/c.py") == b"\xef\xbb\xbfx\r\n\xff"


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "..", "../a", "a/../../b", "a/..", "./a", "a//b", "a/", "a\0b"]
)
def test_a_path_that_may_lead_out_is_refused(folder: Path, path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_file(folder, path)
    assert caught.value.code == "INVALID_PATH"


@pytest.mark.parametrize("path", ["missing.py", "missing/a.py", "a.py/b.py"])
def test_a_missing_file_is_not_found(folder: Path, path: str) -> None:
    (folder / "a.py").write_text("x")
    with pytest.raises(NotFound):
        read_file(folder, path)


def test_links_folders_and_special_files_are_refused(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "a.py").write_text("x")
    (folder / "link.py").symlink_to(folder / "real" / "a.py")
    (folder / "linked").symlink_to(folder / "real")
    os.mkfifo(folder / "fifo")
    for path in ("link.py", "linked/a.py", "fifo", "real"):
        with pytest.raises(InvalidInput) as caught:
            read_file(folder, path)
        assert caught.value.code == "NOT_READABLE"


def test_a_root_whose_name_begins_alike_is_not_reached(folder: Path) -> None:
    (folder / "repo").mkdir()
    (folder / "repo-private").mkdir()
    (folder / "repo-private" / "a.py").write_text("x")
    with pytest.raises(InvalidInput):
        read_file(folder / "repo", "../repo-private/a.py")


def test_a_root_that_became_a_link_is_refused(folder: Path) -> None:
    for name in ("up/root", "elsewhere/root"):
        (folder / name).mkdir(parents=True)
        (folder / name / "a.py").write_text(name)
    assert read_file(folder / "up/root", "a.py") == b"up/root"
    (folder / "up").rename(folder / "moved")
    (folder / "up").symlink_to(folder / "elsewhere")
    with pytest.raises(InvalidInput, match="Symbolic link"):
        read_file(folder / "up/root", "a.py")


def test_a_file_above_the_cap_is_refused(folder: Path, configure: Callable[..., None]) -> None:
    configure(ingest_max_file_bytes=10)
    (folder / "a.py").write_bytes(b"x" * 10)
    (folder / "b.py").write_bytes(b"x" * 11)
    assert len(read_file(folder, "a.py")) == 10
    with pytest.raises(InvalidInput) as caught:
        read_file(folder, "b.py")
    assert caught.value.code == "TOO_LARGE"


def swap_after(
    monkeypatch: pytest.MonkeyPatch, call: str, name: str, swap: Callable[[], None]
) -> None:
    """Let `swap` happen right after the first os.`call` for `name`: the worst moment of a race."""
    original = getattr(os, call)

    def racing(path: object, *args: object, **kwargs: object) -> object:
        result = original(path, *args, **kwargs)
        if path == name:
            monkeypatch.setattr(root_directory.os, call, original)
            swap()
        return result

    monkeypatch.setattr(root_directory.os, call, racing)


def test_a_file_swapped_for_a_link_between_check_and_open_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = folder / "secret"
    secret.write_text("secret")
    root = folder / "root"
    root.mkdir()
    (root / "a.py").write_text("x")

    def swap() -> None:
        (root / "a.py").unlink()
        (root / "a.py").symlink_to(secret)

    swap_after(monkeypatch, "stat", "a.py", swap)
    with pytest.raises(InvalidInput, match="Symbolic link"):
        read_file(root, "a.py")


def test_a_file_swapped_for_a_fifo_does_not_block(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.py").write_text("x")

    def swap() -> None:
        (folder / "a.py").unlink()
        os.mkfifo(folder / "a.py")

    swap_after(monkeypatch, "stat", "a.py", swap)
    with pytest.raises(InvalidInput, match="Not a regular file"):
        read_file(folder, "a.py")


def test_a_folder_swapped_for_a_link_after_it_was_opened_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("root/sub", "outside"):
        (folder / name).mkdir(parents=True)
        (folder / name / "a.py").write_text(name)
    root = folder / "root"

    def swap() -> None:
        (root / "sub").rename(root / "moved")
        (root / "sub").symlink_to(folder / "outside")

    swap_after(monkeypatch, "open", "sub", swap)
    assert read_file(root, "sub/a.py") == b"root/sub"
    with pytest.raises(InvalidInput, match="Symbolic link"):
        read_file(root, "sub/a.py")


def test_a_missing_folder_does_not_affect_later_paths(folder: Path) -> None:
    for name, content in (("a/b/c.py", "inner"), ("a/c.py", "outer")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    with root_directory.RootDirectory(folder) as beneath:
        for path in ("a/b/c.py", "a/gone/c.py", "a/b/c.py", "a/c.py", "gone/c.py", "a/c.py"):
            there = (folder / path).exists()
            try:
                assert beneath.stat(path).st_ino == (folder / path).stat().st_ino
            except FileNotFoundError:
                assert not there


def test_no_descriptor_is_left_open(folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "a" / "b.py").write_text("x")
    before = len(os.listdir("/proc/self/fd"))
    read_file(folder, "a/b.py")
    for path in ("a/missing", "a", "a/b.py/c"):
        with pytest.raises((InvalidInput, NotFound)):
            read_file(folder, path)
    assert len(os.listdir("/proc/self/fd")) == before
