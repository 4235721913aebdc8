"""The one owner of the chromadb package: opens it, guards its folder, translates its errors.

Importing chromadb costs about a second, so it happens when Chroma is first used; an embedded one is
used in a process of its own (`process`, `child`).
"""

import fcntl
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx

from apps.core.errors import Unavailable

CALL_SECONDS = 60.0
# Set when a call has failed, or an index was set aside; the worker looks at the stores when it next
# has time.
failed = threading.Event()
# The index folders that may be deleted, one a line.
DROPPED = "dropped.txt"
CALL_TIMEOUT = httpx.Timeout(CALL_SECONDS, connect=5.0)
# Its checks raise the first two, its Rust side the next two, and a client that was closed the last.
_UNTYPED = (ValueError, TypeError, RuntimeError, OSError, AttributeError)
# One of Chroma's own threads has panicked: nothing that it does from here on can be relied on.
_DEAD_INSIDE = ("Failed to send request", "Failed to receive response")

# The code of a call in which Chroma crashed: once may be chance, twice is not.
CRASHED = "CHROMA_CRASHED"
# The code of a store that cannot be used as a whole, by what is known of its files.
BROKEN = "CHROMA_BROKEN"


def unavailable(message: str, *, retryable: bool = True) -> Unavailable:
    return Unavailable(message, code="CHROMA_UNAVAILABLE", retryable=retryable)


def crashed(message: str) -> Unavailable:
    return Unavailable(f"Chroma crashed: {message}", code=CRASHED)


def broken(message: str) -> Unavailable:
    return Unavailable(message, code=BROKEN)


@contextmanager
def chroma_errors() -> Iterator[None]:
    """Whatever Chroma raises, as Unavailable(CHROMA_UNAVAILABLE), or (CHROMA_CRASHED) for a panic
    of its Rust side: that is no Exception, and its class cannot be imported."""
    from chromadb.errors import ChromaError  # noqa: PLC0415 - heavy, see above

    try:
        yield
    except (ChromaError, httpx.HTTPError, *_UNTYPED) as error:
        if any(sign in str(error) for sign in _DEAD_INSIDE):
            raise crashed(str(error)) from error
        raise unavailable(f"Chroma failed: {error}") from error
    except _panics() as error:
        raise crashed(str(error)) from error


def _panics() -> tuple[type[BaseException], ...]:
    """The class that pyo3 makes for panics, for each library that it is in."""
    every = BaseException.__subclasses__()
    return tuple(each for each in every if each.__name__ == "PanicException")


def is_missing(error: Unavailable) -> bool:
    """Whether Chroma said that the collection is not there."""
    from chromadb.errors import NotFoundError  # noqa: PLC0415 - heavy, see above

    return isinstance(error.__cause__, NotFoundError)


class FolderLock:
    """One process at a time: two that write one embedded store lose vectors without an error.

    The kernel lets go of a lock when the process ends, however it ends. The process that uses the
    store and the child that has it open each take one, of their own `name`: the first says at once
    that another process is there, the second waits until the child of one that was killed has
    ended, which it does within a call.
    """

    def __init__(self, folder: Path, name: str = "chroma.lock", *, wait: bool = False) -> None:
        self._path = folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise unavailable(f"The Chroma store cannot be opened: {error}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            os.close(self._file)
            raise unavailable(
                f"Another process uses the Chroma store in {folder}. Stop it, or run a Chroma "
                "server and set CHROMA_URL for both",
                retryable=False,
            ) from error

    def holds(self) -> bool:
        """Whether it still locks others out, and its file was not removed."""
        try:
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Let go of it."""
        os.close(self._file)


def open_embedded(folder: Path) -> Any:
    """A client of the store in `folder`, which the caller has locked."""
    import chromadb  # noqa: PLC0415 - heavy, see above
    from chromadb.api.shared_system_client import SharedSystemClient  # noqa: PLC0415

    with chroma_errors():
        # One that failed to start stays known by its path, and would be given again.
        SharedSystemClient.clear_system_cache()
        return chromadb.PersistentClient(path=str(folder))


def open_server(url: str) -> Any:
    """A client of the server at `url`, which must answer."""
    import chromadb  # noqa: PLC0415 - heavy, see above

    parts = urlsplit(url)
    with chroma_errors():
        client = chromadb.HttpClient(
            host=parts.hostname or "", port=parts.port or 8000, ssl=parts.scheme == "https"
        )
        # Chroma's own way is to wait for ever and to leave connections open; it has no setting.
        session = client._server._session
        session.timeout = CALL_TIMEOUT
        client.close = session.close
        # It has asked its only question, over a connection of its own.
        client._admin_client._server._session.close()
        return client


def note_dropped(folder: Path, collection: str) -> None:
    """Write down the index folders of a collection that is about to be deleted, for `sweep`."""
    try:
        segments = _segments(folder, collection)
    except sqlite3.Error:
        return  # another Chroma keeps its rows differently: its folders stay
    _write_dropped(folder, _dropped(folder) | segments)


def sweep(folder: Path) -> list[str]:
    """Remove the index folders of collections that were deleted; their names.

    Chroma 1.5 leaves them behind. Only those go that were written down when their collection was
    deleted: a folder that Chroma's database does not know may belong to one that was taken away,
    emptied or replaced, and comes to use again when that is put back.
    """
    dropped = _dropped(folder)
    if not dropped:
        return []
    try:
        owned = _segments(folder)
    except sqlite3.Error:
        return []
    removed = [name for name in sorted(dropped - owned) if (folder / name).is_dir()]
    for name in removed:
        with suppress(OSError):
            shutil.rmtree(folder / name)
    _write_dropped(folder, {name for name in dropped if (folder / name).is_dir()})
    return removed


def _dropped(folder: Path) -> set[str]:
    try:
        names = (folder / DROPPED).read_text("ascii", errors="replace").split()
    except FileNotFoundError:
        return set()
    return {name for name in names if _is_uuid(name)}


def _write_dropped(folder: Path, names: set[str]) -> None:
    """In one step, so that a kill leaves the list before or after. A list that cannot be written
    costs space, and keeps nothing from being deleted."""
    new = folder / f"{DROPPED}.new"
    with suppress(OSError):
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.writelines(f"{name}\n" for name in sorted(names))
        new.replace(folder / DROPPED)


def _segments(folder: Path, collection: str | None = None) -> set[str]:
    """The index folders that Chroma's database names: of one collection, or of all."""
    address = f"{(folder / 'chroma.sqlite3').absolute().as_uri()}?mode=ro"
    which = "" if collection is None else "JOIN collections c ON c.id = collection WHERE c.name = ?"
    values = () if collection is None else (collection,)
    with closing(sqlite3.connect(address, uri=True, timeout=30)) as database:
        rows = database.execute(f"SELECT s.id FROM segments s {which}", values)
        return {row[0] for row in rows}


def is_index_folder(path: Path) -> bool:
    """Whether Chroma keeps the index of a collection there."""
    return _is_uuid(path.name) and path.is_dir()


def _is_uuid(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False
