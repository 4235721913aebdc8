"""The process that has the embedded Chroma open: `python -m apps.index.vectors.child FD`.

Chroma holds Python's global lock for the whole of a write. Here nobody else wants it.

It answers what comes through the socket of its parent, one request after the other: a folder to
open, then verbs of Collections with their arguments, then None to close the folder, then perhaps
another. Each is answered by (True, result) or (False, Unavailable). After CHROMA_CRASHED the parent
ends it. It ends when the parent's end of the socket does, however the parent ended. It is deaf to
the signals that end the parent in order: what the parent has still to write must find it.
"""

import os
import signal
import socket
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from apps.core.errors import Unavailable
from apps.index.vectors import chroma
from apps.index.vectors.collections import Collections
from apps.index.vectors.pipe import Pipe

LOCK = "child.lock"


def main() -> None:
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.SIG_IGN)
    leave_a_core()
    # The parent may end at any moment, while it is read from or written to.
    with suppress(EOFError, ConnectionError), closing(Pipe(_socket())) as parent:
        while True:
            folder = parent.receive()
            try:
                _serve(parent, folder)
            except Unavailable as error:
                parent.send((False, error))
            else:
                parent.send((True, None))


def leave_a_core() -> None:
    """Of several cores one is left to whoever waits for an answer: Chroma's threads want all while
    they write. For those that begin from now on; where the system knows no such thing, nothing."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[:-1] or cores)


def _socket() -> socket.socket:
    return socket.socket(fileno=int(sys.argv[1]))


def _serve(parent: Pipe, folder: Path) -> None:
    """One folder from its opening to its closing. Raises Unavailable where it cannot be opened."""
    with (
        closing(chroma.FolderLock(folder, LOCK, wait=True)),
        closing(Collections(chroma.open_embedded(folder), folder)) as collections,
    ):
        parent.send((True, None))
        while (request := parent.receive()) is not None:
            parent.send(_answer(collections, *request))


def _answer(
    collections: Collections, verb: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[bool, Any]:
    try:
        return True, verb(collections, *args, **options)
    except Unavailable as error:
        return False, error


if __name__ == "__main__":
    main()
