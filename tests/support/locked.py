"""A data folder that another process uses."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apps.core.data import folder_lock
from apps.core.system import posix


@contextmanager
def used_elsewhere(data: Path) -> Iterator[None]:
    data.mkdir(parents=True, exist_ok=True)
    with locked_elsewhere(data / folder_lock.NAME):
        yield


@contextmanager
def locked_elsewhere(path: Path) -> Iterator[None]:
    """To the kernel, the lock of another open file is as one of another process."""
    with posix.open_private(path) as file:
        assert posix.lock(file, wait=False)
        yield


def is_used(data: Path) -> bool:
    """Whether a process has the lock of a data folder."""
    try:
        with (data / folder_lock.NAME).open("rb") as file:
            return not posix.lock(file, wait=False)
    except FileNotFoundError:
        return False
