"""The lock of the data folder: one process writes there, or several whose settings say so.

`server.lock` (`site.server_file`) has another purpose: it tells commands whether a server is ready.
"""

import os
from pathlib import Path

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.system import posix

NAME = "data.lock"

_descriptor: int | None = None
_is_inherited = False


def descriptor() -> int | None:
    """Return the descriptor of the lock, for a child process: the folder stays locked until both
    have ended."""
    return _descriptor


def inherit(descriptor: int) -> None:
    """Use the lock of the parent process, whose `descriptor` is open here."""
    global _descriptor, _is_inherited
    _descriptor, _is_inherited = descriptor, True


def claim(seconds: float = 0.0) -> None:
    """Lock the data folder until this process ends, or `release`. Does nothing if this process has
    the lock; takes it again if its file was removed or replaced, unless it has inherited it.

    seconds: how long to wait for the worker of a server that was killed

    Raises Unavailable, not retryable, if another process uses the folder.
    """
    global _descriptor
    folder = config().data_dir.absolute()
    if _is_held(folder / NAME):
        return
    if _is_inherited:
        raise Unavailable(f"The lock of the data folder {folder} was removed.", retryable=False)
    release()
    try:
        _descriptor = posix.open_nofollow(folder / NAME, os.O_RDWR | os.O_CREAT)
        is_ours = posix.lock_within(_descriptor, seconds, shared=config().shares_data)
    except OSError as error:
        release()
        reason = (
            f"The data folder {folder} cannot be locked ({error.strerror or error}): give this "
            f"user the folder, or move away what is in the place of {NAME}."
        )
        raise Unavailable(reason, retryable=False) from error
    if not is_ours:
        release()
        raise Unavailable(
            f"Another process uses the data folder {folder}: stop it, or set CODEINFO_DATA_DIR to "
            "another folder.",
            retryable=False,
        )


def release() -> None:
    """Unlock the data folder, if this process has it locked."""
    global _descriptor
    if _descriptor is not None:
        os.close(_descriptor)
        _descriptor = None


def _is_held(path: Path) -> bool:
    try:
        return _descriptor is not None and os.path.samestat(os.fstat(_descriptor), path.stat())
    except FileNotFoundError:
        return False
