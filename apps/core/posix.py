"""Functions of the operating system that only POSIX has.

The module imports anywhere; its functions raise Unsupported on other systems.
"""

import os
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class Unsupported(OSError):
    """This operating system has no such function."""


def open_private(path: Path) -> BinaryIO:
    """Open a file for reading and writing; create it with mode 0600. Raises OSError."""
    return open(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600), "r+b")


def lock(file: BinaryIO | int, *, shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file, as flock(2) does, until it is closed or its process ends. Return False if
    another process has it and `wait` is False. Raises OSError."""
    if fcntl is None:
        raise Unsupported("Files cannot be locked on this system.")
    operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, operation if wait else operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
