"""The child process that has the embedded Chroma open: `python -m apps.index.vectors.child FD`.

It is a separate process because Chroma holds Python's global interpreter lock during a write.

Protocol, over the socket FD: the parent sends a folder to open, then any number of
(verb of Collections, args, options), then None to close the folder, after which the memory that
Chroma has freed is returned to the operating system; then perhaps another folder.
Each request is answered by (True, result) or (False, Unavailable). After CHROMA_CRASHED the parent
ends the process.

The process ends when the parent's end of the socket is closed. It ignores SIGINT and SIGTERM, as
the parent may still write while it shuts down.
"""

import signal
import socket
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from apps.core.errors import Unavailable
from apps.core.system import posix
from apps.core.system.heap import trim
from apps.core.system.pipe import Pipe
from apps.index.vectors import chroma
from apps.index.vectors.collections import Collections

LOCK = "child.lock"


def main() -> None:
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.SIG_IGN)
    posix.leave_one_core()
    # The parent may end at any time.
    with suppress(EOFError, ConnectionError), closing(Pipe(_socket())) as parent:
        while True:
            folder = parent.receive()
            try:
                _serve(parent, folder)
            except Unavailable as error:
                parent.send((False, error))
            else:
                trim.now()
                parent.send((True, None))


def _socket() -> socket.socket:
    return socket.socket(fileno=int(sys.argv[1]))


def _serve(parent: Pipe, folder: Path) -> None:
    """Open a folder, answer requests, and close it. Raises Unavailable if it cannot be opened."""
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
