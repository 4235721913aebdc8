"""Opens Chroma, locks its folder, and translates its errors. Only this module imports chromadb.

The import takes about a second, so it happens at the first use. An embedded Chroma runs in a child
process (`process`, `child`).
"""

import os
import shutil
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx

from apps.core.errors import Unavailable
from apps.core.system import posix

CALL_SECONDS = 60.0
_LOADING = threading.Lock()
# Names of index folders that may be deleted, one a line.
DROPPED = "dropped.txt"
CALL_TIMEOUT = httpx.Timeout(CALL_SECONDS, connect=5.0)
# Raised by Chroma's checks (the first two), its Rust code (the next two), and a closed client.
_UNTYPED = (ValueError, TypeError, RuntimeError, OSError, AttributeError)
# A thread of Chroma has panicked: later results cannot be relied on.
_PANIC_MESSAGES = ("Failed to send request", "Failed to receive response")

# Error codes: Chroma crashed in this call; the files of the whole store cannot be used.
CRASHED = "CHROMA_CRASHED"
BROKEN = "CHROMA_BROKEN"


def unavailable(message: str, *, retryable: bool = True) -> Unavailable:
    """Return the error of a call that failed."""
    return Unavailable(message, code="CHROMA_UNAVAILABLE", retryable=retryable)


def crashed(message: str) -> Unavailable:
    """Return the error of a call that crashed Chroma."""
    return Unavailable(f"Chroma crashed: {message}", code=CRASHED)


def broken(message: str) -> Unavailable:
    """Return the error of a store that is broken as a whole."""
    return Unavailable(message, code=BROKEN)


def _load() -> None:
    """Import chromadb. Else its import takes settings from `.env` in the current folder."""
    with _LOADING:
        if "chromadb" in sys.modules:
            return
        package = ModuleType("chromadb")
        found = find_spec("chromadb")
        package.__path__ = list((found and found.submodule_search_locations) or ())
        sys.modules["chromadb"] = package
        try:
            config = import_module("chromadb.config")
        finally:
            del sys.modules["chromadb"]
        config.Settings.model_config["env_file"] = None
        import_module("chromadb").config = config  # type: ignore[attr-defined]


@contextmanager
def chroma_errors() -> Iterator[None]:
    """Translate errors of Chroma to Unavailable CHROMA_UNAVAILABLE, and a panic of its Rust code to
    CHROMA_CRASHED. A panic is not an Exception, and its class cannot be imported."""
    _load()
    from chromadb.errors import ChromaError  # noqa: PLC0415 - heavy, see above

    try:
        yield
    except (ChromaError, httpx.HTTPError, *_UNTYPED) as error:
        if any(sign in str(error) for sign in _PANIC_MESSAGES):
            raise crashed(str(error)) from error
        raise unavailable(f"Chroma failed: {error}") from error
    except _panics() as error:
        raise crashed(str(error)) from error


def _panics() -> tuple[type[BaseException], ...]:
    """Return pyo3's class for panics, one for each loaded library that uses pyo3."""
    classes = BaseException.__subclasses__()
    return tuple(each for each in classes if each.__name__ == "PanicException")


def is_missing(error: Unavailable) -> bool:
    """Whether the cause of `error` is that the collection does not exist."""
    _load()
    from chromadb.errors import NotFoundError  # noqa: PLC0415 - heavy, see above

    return isinstance(error.__cause__, NotFoundError)


class FolderLock:
    """Locks a folder for one process (flock). Two processes that write one embedded store lose
    vectors without an error.

    The kernel releases the lock when the process ends. The parent and its child take locks of
    different names. The parent fails at once if another process has the lock. The child waits
    until the child of a killed parent has ended.
    """

    def __init__(self, folder: Path, name: str = "chroma.lock", *, wait: bool = False) -> None:
        self._path = folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise unavailable(f"The Chroma store cannot be opened: {error}") from error
        try:
            if not posix.lock(self._file, wait=wait):
                raise BlockingIOError("another process has the lock")
        except OSError as error:
            os.close(self._file)
            raise unavailable(
                f"Another process uses the Chroma store in {folder}. Stop it, or run a Chroma "
                "server and set CHROMA_URL for both",
                retryable=False,
            ) from error

    def holds(self) -> bool:
        """Whether the lock is effective: its file was not removed or replaced."""
        try:
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Release the lock."""
        os.close(self._file)


def open_embedded(folder: Path) -> Any:
    """Return a client of the store in `folder`, which the caller has locked. Raises Unavailable."""
    _load()
    import chromadb  # noqa: PLC0415 - heavy, see above
    from chromadb.api.shared_system_client import SharedSystemClient  # noqa: PLC0415

    with chroma_errors():
        # Chroma caches clients by path, even one that failed to start.
        SharedSystemClient.clear_system_cache()
        return chromadb.PersistentClient(path=str(folder))


def open_server(url: str) -> Any:
    """Return a client of the server at `url`. Raises Unavailable if it does not answer."""
    _load()
    import chromadb  # noqa: PLC0415 - heavy, see above

    parts = urlsplit(url)
    with chroma_errors():
        client = chromadb.HttpClient(
            host=parts.hostname or "", port=parts.port or 8000, ssl=parts.scheme == "https"
        )
        # By default Chroma never times out and never closes connections; there is no setting.
        session = client._server._session
        session.timeout = CALL_TIMEOUT
        client.close = session.close
        # The admin client has a connection of its own, which is no longer needed.
        client._admin_client._server._session.close()
        return client


def note_dropped(folder: Path, collection: str) -> None:
    """Record the index folders of a collection that is about to be deleted, for `sweep`."""
    try:
        segments = _segments(folder, collection)
    except sqlite3.Error:
        return  # another version of Chroma has other tables: the folders stay
    _write_dropped(folder, _dropped(folder) | segments)


def sweep(folder: Path) -> list[str]:
    """Remove the index folders of deleted collections, which Chroma 1.5 leaves behind. Return their
    names.

    Only folders recorded by `note_dropped` are removed. A folder that is not in Chroma's database
    may belong to a database that was moved away and will be put back.
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
    """Replace the list in one step. An error is ignored: it only costs disk space."""
    new = folder / f"{DROPPED}.new"
    with suppress(OSError):
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.writelines(f"{name}\n" for name in sorted(names))
        new.replace(folder / DROPPED)


def _segments(folder: Path, collection: str | None = None) -> set[str]:
    """Return the names of the index folders of one collection, or of all. Raises sqlite3.Error."""
    address = f"{(folder / 'chroma.sqlite3').absolute().as_uri()}?mode=ro"
    which = "" if collection is None else "JOIN collections c ON c.id = collection WHERE c.name = ?"
    values = () if collection is None else (collection,)
    with closing(sqlite3.connect(address, uri=True, timeout=30)) as database:
        rows = database.execute(f"SELECT s.id FROM segments s {which}", values)
        return {row[0] for row in rows}


def is_index_folder(path: Path) -> bool:
    """Whether this is the index folder of a collection."""
    return _is_uuid(path.name) and path.is_dir()


def _is_uuid(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False
