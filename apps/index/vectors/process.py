"""Chroma in a process of its own (`core.concurrency.background`): it holds Python's global
interpreter lock during a write, and all of its memory is free when the process ends. An embedded
one has 1.7 kB a row of the shards that were written or searched.

The process is started by the first call.
"""

import os
import re
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from apps.core.concurrency.background import Background, ProcessLost
from apps.core.errors import reason_of
from apps.core.monitoring.telemetry import span, tell
from apps.core.system import posix
from apps.index.chunk_ids import is_uuid
from apps.index.vectors import chroma
from apps.index.vectors.collections import Collections

P = ParamSpec("P")
Result = TypeVar("Result")

DATABASE, LOCK = "chroma.sqlite3", "chroma.lock"
# Lower than an ingest.
NICE = 15
# The environment that a client of a server reads: Chroma's settings, certificates, proxies.
_OF_SERVER = re.compile(r"(CHROMA|SSL)_|\w+_PROXY$", re.IGNORECASE)
# The process of a killed server ends within a call.
LOCK_SECONDS = 10.0


class ChromaProcess:
    """Calls the verbs of Collections. Thread-safe: calls run one at a time.

    Raises Unavailable CHROMA_UNAVAILABLE if the server does not answer or another process has the
    folder, and chroma.Failed if what Chroma has may be broken, also if the process is lost or does
    not answer in time. The next call starts another one.
    """

    def __init__(self, folder: Path, url: str) -> None:
        """folder: of an embedded Chroma
        url: of a server; "": embedded"""
        self._folder, self._url = folder, url
        self._lock = threading.Lock()
        self._process: Background | None = None
        # Device and inode of the database. A process can still use one that was removed.
        self._file: tuple[int, int] | None = None

    @span("chroma")
    def call(
        self, verb: Callable[Concatenate[Collections, P], Result], *args: P.args, **none: P.kwargs
    ) -> Result:
        """Return the result of a verb of Collections."""
        tell(verb=verb.__name__)
        with self._lock:
            if self._file and self._file != _file(self._folder):
                self._end()
            if self._process is None:
                self._process = self._new_process()
            try:
                result: Result = self._process.call(_answer, self._folder, self._url, verb, args)
            except ProcessLost as error:
                self._end()
                raise chroma.Failed(f"Chroma's process was lost: {error}") from error
            except chroma.Failed:
                self._end()  # it may keep what it has read
                raise
            self._file = _file(self._folder)
            if verb is Collections.drop and not self._url:
                _delete_unowned(self._folder)
            return result

    def close(self) -> None:
        """End the process after the call in progress. The next call starts another one."""
        with self._lock:
            self._end()

    def interrupt(self) -> None:
        """End the process, also during a call, which raises chroma.Failed."""
        if (process := self._process) is not None:
            process.kill()

    def delete_all(self) -> None:
        """End the process and delete all files. Raises OSError."""
        with self._lock:
            self._end()
            for path in self._folder.iterdir():
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()

    def is_inflated(self) -> bool:
        """Whether an index folder has more bytes of links than of vectors. Of a damaged file,
        hnswlib writes terabytes of links until the disk is full."""
        for links in self._folder.glob("*/link_lists.bin"):
            with suppress(OSError):
                if links.stat().st_size > links.with_name("data_level0.bin").stat().st_size:
                    return True
        return False

    def _new_process(self) -> Background:
        if self._url:
            # Each request to the server has its limit.
            env = {name: value for name, value in os.environ.items() if _OF_SERVER.match(name)}
            return Background("chroma", nice=NICE, env=env)
        return Background("chroma", nice=NICE, seconds=chroma.CALL_SECONDS)

    def _end(self) -> None:
        if self._process is not None:
            self._process.close()
        self._process = self._file = None


def _file(folder: Path) -> tuple[int, int] | None:
    """Return device and inode of the database."""
    with suppress(OSError):
        status = (folder / DATABASE).stat()
        return status.st_dev, status.st_ino
    return None


def _delete_unowned(folder: Path) -> None:
    """Delete the index folders of deleted collections, which Chroma 1.5 leaves behind.

    Not in Chroma's process: it has an SQLite of its own, and two in one process do not see the
    locks of each other (sqlite.org/howtocorrupt.html, 2.2.1).
    """
    try:
        address = f"{(folder / DATABASE).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=30)) as database:
            owned = {row[0] for row in database.execute("SELECT id FROM segments")}
        unowned = [path for path in folder.iterdir() if is_uuid(path.name)]
    except (sqlite3.Error, OSError):
        return  # another version of Chroma has other tables: the folders stay
    for path in unowned:
        if path.name not in owned:
            shutil.rmtree(path, ignore_errors=True)


# --- in the process -------------------------------------------------------------------------------

_collections: Collections | None = None


def _answer(folder: Path, url: str, verb: Callable[..., Result], args: tuple[Any, ...]) -> Result:
    """Call a verb. The first call connects to the server, or opens the folder, which stays locked
    as long as the process lives."""
    global _collections
    with chroma.chroma_errors():
        if _collections is None:
            _collections = Collections(chroma.open_server(url) if url else _opened(folder))
        return verb(_collections, *args)


def _opened(folder: Path) -> Any:
    posix.leave_one_core()
    _claim(folder)
    return chroma.open_embedded(folder)


def _claim(folder: Path) -> None:
    """Lock the folder. Raises Unavailable if another process has it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        is_ours = posix.lock_within(lock, LOCK_SECONDS)
    except OSError as error:
        raise chroma.unavailable(f"Chroma's folder cannot be used: {reason_of(error)}") from error
    if not is_ours:
        raise chroma.unavailable(f"Another process uses the Chroma store in {folder}")
