"""A lock that stops changes of the published index while it is copied or repaired.

Publishing, merging and deleting wait, in all processes that share the data folder. A run continues
to read, embed and write chunks, which are not published yet.

Two files are locked, as flock(2) does, and a killed process has unlocked them:

    changes.lock    shared by changes in progress; exclusive to who freezes the index
    freeze.lock     exclusive to who freezes the index, or waits to do so: no change begins

Any number of threads change the index, or one freezes it; that one may also change it. Each other
thread opens the files for itself, so threads of one process wait for each other as processes do.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO

from apps.core.config import config
from apps.core.errors import Conflict, Unavailable, reason_of
from apps.core.system import posix
from apps.index.types import Check, never_cancelled

CHANGES, FREEZE = NAMES = ("changes.lock", "freeze.lock")
# How often a waiting `frozen` tries again, and calls its check.
POLL_SECONDS = 0.2
FROZEN = "A backup or a repair is under way: try again when it is done."


class _Thread(threading.local):
    is_inside = False  # whether this thread changes the index, or has frozen it


_thread = _Thread()


@contextmanager
def changing(*, wait: bool = True) -> Iterator[None]:
    """Hold the lock for a change of what is published. While another thread freezes the index,
    wait, or raise Conflict BUSY if `wait` is false. Raises Unavailable if the files cannot be
    locked."""
    if _thread.is_inside:
        yield
        return
    with _locked(FREEZE, shared=True, wait=wait):
        # Who locks this one for itself has the other as well.
        changes = _locked(CHANGES, shared=True)
    with changes, _inside():
        yield


@contextmanager
def frozen(check: Check = never_cancelled) -> Iterator[None]:
    """Freeze the index: inside the block only this thread changes what is published.

    Waits for changes in progress. `check` is called while waiting; an exception that it raises
    ends the wait. Raises Unavailable if the files cannot be locked.
    """
    with ExitStack() as locks:
        for name in (FREEZE, CHANGES):
            locks.enter_context(_wait_for(name, check))
        locks.enter_context(_inside())
        yield


@contextmanager
def _inside() -> Iterator[None]:
    _thread.is_inside = True
    try:
        yield
    finally:
        _thread.is_inside = False


def _locked(name: str, *, shared: bool = False, wait: bool = True) -> BinaryIO:
    """Lock a file of the data folder until it is closed. Raises Unavailable, and Conflict BUSY if
    another has locked it and `wait` is false."""
    with ExitStack() as opened:
        try:
            file = opened.enter_context(posix.open_private(config().data_dir.absolute() / name))
            is_ours = posix.lock(file, shared=shared, wait=wait)
        except OSError as error:
            reason = reason_of(error)
            raise Unavailable(f"The index cannot be locked for a change: {reason}") from error
        if not is_ours:
            raise Conflict(FROZEN, code="BUSY")
        opened.pop_all()
        return file


def _wait_for(name: str, check: Check) -> BinaryIO:
    while True:
        with suppress(Conflict):
            return _locked(name, wait=False)
        check()
        time.sleep(POLL_SECONDS)
