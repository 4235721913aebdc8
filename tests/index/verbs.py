"""Verbs that a test has Chroma's process do."""

import os
import signal
from pathlib import Path

from apps.index.vectors import chroma
from apps.index.vectors.collections import Collections


def die(collections: Collections) -> None:
    """kill -9 in the middle of a call."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_once(collections: Collections, mark: Path) -> str:
    """kill -9 in the middle of the first call."""
    if not mark.exists():
        mark.touch()
        die(collections)
    return "survived"


def pid(collections: Collections) -> int:
    return os.getpid()


class PanicException(BaseException):
    """As pyo3 raises for a panic of Rust: no Exception."""


def panic(collections: Collections) -> None:
    with chroma.chroma_errors():
        raise PanicException("called `Option::unwrap()` on a `None` value")


def segfault(collections: Collections) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def malformed(collections: Collections) -> None:
    """As Chroma tells of a page of its database that is none."""
    raise chroma.unavailable("Chroma failed: error returned from database: (code: 11) malformed")
