"""Verbs that a test has Chroma's process do."""

import os
import signal

from apps.ingest.vectors.collections import Collections


def die(collections: Collections) -> None:
    """kill -9 in the middle of a call."""
    os.kill(os.getpid(), signal.SIGKILL)


def pid(collections: Collections) -> int:
    return os.getpid()
