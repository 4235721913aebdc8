"""A real disk that is small, to be filled: a tmpfs, mounted for one test."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

BALLAST = "ballast"


@contextmanager
def small_disk(folder: Path, megabytes: int, files: int = 0) -> Iterator[Path]:
    """`folder` is a disk of this size, for so many files, inside the block. Skips the test where
    none can be mounted, which takes root."""
    folder.mkdir(parents=True)
    options = f"size={megabytes}m,mode=0700" + (f",nr_inodes={files}" if files else "")
    command = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        refused = done.stderr if done.returncode else ""
    except OSError as error:
        refused = str(error)
    if refused:
        pytest.skip(f"no disk can be mounted here: {refused.strip()}")
    try:
        yield folder
    finally:
        # Lazily: a process that has just been ended may hold it for a moment.
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Another program writes until there is no room."""
    file = os.open(folder / BALLAST, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while os.write(file, b"x" * size):
                    pass
            except OSError:
                continue
    finally:
        os.close(file)


def use_up_files(folder: Path) -> None:
    """Another program writes files until no inode is left."""
    with suppress(OSError):
        for number in count():
            (folder / f"{BALLAST}-{number}").touch()


def make_room(folder: Path) -> None:
    (folder / BALLAST).unlink()
