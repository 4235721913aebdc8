"""Opens files below a root without ever leaving it.

Each component of a path is opened relative to the one before (openat), never through a symbolic
link. So the kernel refuses a folder that was replaced by a link after it was listed; there is no
check that can be raced. Only regular files are opened: opening a FIFO can block, and opening a
device can have effects.
"""

import errno
import os
import stat
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple, Self

from apps.code.chunking import digest_of
from apps.code.notebooks import MAX_NOTEBOOK_BYTES, is_notebook_path, notebook_text
from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound
from apps.core.system import posix

LIST_FLAGS = os.O_RDONLY | posix.O_DIRECTORY
FILE_FLAGS = os.O_RDONLY | posix.O_NONBLOCK

# Deeper folders are skipped: projects do not have them, and each level costs a system call.
MAX_DEPTH = 100
# A RootDirectory has at most this many folders open, and three other descriptors: the root, the
# next folder and the file. Sockets need descriptors too.
MAX_OPEN_LEVELS = 28
# Statuses that are read with the entries of one folder. Each takes 600 bytes.
MAX_STATUSES = 10_000

SYMBOLIC_LINK = "Symbolic link"
SPECIAL = "Not a regular file"
UNREADABLE = "Not readable"
MISSING = "Missing"
TOO_DEEP = f"Nested too deep: over {MAX_DEPTH} levels"

REASONS = {
    errno.ELOOP: SYMBOLIC_LINK,
    errno.ENOENT: MISSING,
    errno.ENOTDIR: MISSING,
    errno.EACCES: UNREADABLE,
    errno.EPERM: UNREADABLE,
    errno.ENAMETOOLONG: MISSING,
}


def reason_of(error: OSError) -> str:
    """Return a short reason why a file could not be opened or read."""
    if isinstance(error, TooDeep):
        return TOO_DEEP
    if not error.errno:
        return UNREADABLE
    return REASONS.get(error.errno) or f"{UNREADABLE}: {os.strerror(error.errno)}"


def is_unreadable(error: OSError) -> bool:
    """Whether the file may exist: rights or descriptors are missing, or the disk is faulty."""
    return not isinstance(error, SpecialFile) and reason_of(error).startswith(UNREADABLE)


class SpecialFile(OSError):
    """A FIFO, socket, device or folder instead of a regular file."""


class TooDeep(OSError):
    """A path with more than MAX_DEPTH folders."""


class Unreadable(InvalidInput):
    """A file that may exist but cannot be read now."""

    code = "NOT_READABLE"

    def __init__(self, reason: str, rel_path: str) -> None:
        super().__init__(f"{reason}: {rel_path}")
        self.reason = reason


class Entry(NamedTuple):
    """One entry of a folder. A link to a folder is not a folder.

    status: as of `RootDirectory.stat`, if it was wanted; None for a folder, where it failed, and
        after MAX_STATUSES entries
    """

    name: str
    is_link: bool
    is_folder: bool
    status: os.stat_result | None = None


class RootDirectory:
    """An open root. Methods take paths relative to it and raise OSError.

    The upper folders of the last path stay open, so that a walk in order opens each folder once.
    Not thread-safe.
    """

    def __init__(self, root: Path) -> None:
        self._root = _open_root(root)
        self._at: str | None = ""  # the open folder; None after one could not be opened
        # Of the open folders, from the root down. The last may be a path: its parents are closed.
        self._names: list[str] = []
        self._folders = [self._root]  # their descriptors, after that of the root

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._leave(0)
        os.close(self._root)

    def identity(self) -> tuple[int, int]:
        """Return device and inode of the root. No other folder has them while this is open."""
        status = os.fstat(self._root)
        return status.st_dev, status.st_ino

    def stat(self, path: str) -> os.stat_result:
        """Return the status of a path (lstat). Raises OSError."""
        folder, name = self._enter(path)
        return posix.stat_at(folder, name)

    def open(self, path: str) -> tuple[int, os.stat_result]:
        """Open a regular file. The caller closes the descriptor. Raises OSError."""
        folder, name = self._enter(path)
        _only_regular(posix.stat_at(folder, name))
        descriptor = posix.open_at(folder, name, FILE_FLAGS)
        try:
            status = os.fstat(descriptor)
            _only_regular(status)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor, status

    def read(self, path: str, limit: int) -> bytes:
        """Return the first bytes of a regular file, at most `limit`. Raises OSError."""
        descriptor, _ = self.open(path)
        try:
            return read_up_to(descriptor, limit)
        finally:
            os.close(descriptor)

    def check_listable(self) -> None:
        """Raise OSError if the root cannot be listed. Reads one entry: it may have very many."""
        descriptor = posix.open_at(self._root, ".", LIST_FLAGS)
        try:
            with os.scandir(descriptor) as entries:
                next(entries, None)
        finally:
            os.close(descriptor)

    def entries(self, folder: str, *, with_status: bool = False) -> list[Entry]:
        """List a folder. Its path ends with a slash; "" is the root. Raises OSError."""
        parent, _ = self._enter(folder)
        descriptor = posix.open_at(parent, ".", LIST_FLAGS)
        statuses = MAX_STATUSES if with_status else 0
        try:
            with os.scandir(descriptor) as entries:
                return [
                    Entry(
                        entry.name,
                        entry.is_symlink(),
                        is_folder := entry.is_dir(follow_symlinks=False),
                        _status_of(entry) if at < statuses and not is_folder else None,
                    )
                    for at, entry in enumerate(entries)
                ]
        finally:
            os.close(descriptor)

    def _enter(self, path: str) -> tuple[int, str]:
        if path.count("/") > MAX_DEPTH:
            raise TooDeep(TOO_DEEP)
        folder, _, name = path.rpartition("/")
        if folder != self._at:
            self._at = None
            self._go_to(folder.split("/") if folder else [])
            self._at = folder
        return self._folders[-1], name

    def _go_to(self, folders: list[str]) -> None:
        common = len(os.path.commonprefix([folders, self._names]))
        self._leave(common)
        for folder in folders[common:]:
            inner, name = posix.enter_folder(folder, self._folders[-1]), folder
            if len(self._names) == MAX_OPEN_LEVELS:
                name = f"{self._names[-1]}/{folder}"
                self._leave(MAX_OPEN_LEVELS - 1)
            self._folders.append(inner)
            self._names.append(name)

    def _leave(self, depth: int) -> None:
        while len(self._names) > depth:
            os.close(self._folders.pop())
            self._names.pop()


def _open_root(root: Path) -> int:
    """Open a root by its real path. A component that is a link now replaced a folder."""
    here = posix.enter_folder(root.absolute().anchor)
    for name in root.absolute().parts[1:]:
        try:
            inner = posix.enter_folder(name, here)
        finally:
            os.close(here)
        here = inner
    return here


def _status_of(entry: "os.DirEntry[str]") -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _only_regular(status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, SYMBOLIC_LINK)
    if not stat.S_ISREG(status.st_mode):
        raise SpecialFile(SPECIAL)


def read_up_to(descriptor: int, limit: int) -> bytes:
    """Read at most `limit` bytes from the current position."""
    parts: list[bytes] = []
    while limit > 0 and (part := os.read(descriptor, min(limit, 1 << 20))):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def read_file(
    root: Path, rel_path: str, limit: int | None = None, directory: RootDirectory | None = None
) -> bytes:
    """Return the content of a regular file below `root`. No component of its path may be a link.

    limit: maximum size in bytes, by default INGEST_MAX_FILE_BYTES
    directory: that of `root`, if it is open

    Raises NotFound if there is no file, and InvalidInput with the code INVALID_PATH for a path that
    leads out of the root, NOT_READABLE if it is not a regular file (Unreadable if only reading
    fails), and TOO_LARGE.
    """
    _check_path(rel_path)
    limit = limit or config().ingest_max_file_bytes
    try:
        with nullcontext(directory) if directory else RootDirectory(root) as opened:
            data = opened.read(rel_path, limit + 1)
    except SpecialFile:
        raise InvalidInput(f"{SPECIAL}: {rel_path}", code="NOT_READABLE") from None
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"There is no file {rel_path}") from None
    except OSError as error:
        if is_unreadable(error):
            raise Unreadable(reason_of(error), rel_path) from error
        raise InvalidInput(f"{reason_of(error)}: {rel_path}", code="NOT_READABLE") from error
    if len(data) > limit:
        raise InvalidInput(f"Too large: {rel_path}", code="TOO_LARGE")
    return data


def read_content(root: Path, rel_path: str, directory: RootDirectory | None = None) -> bytes:
    """Return what is ingested of a file: of a notebook the text of its cells, of any other file all
    bytes. Arguments and errors as of `read_file`; INGEST_MAX_FILE_BYTES limits the result."""
    if not is_notebook_path(rel_path):
        return read_file(root, rel_path, directory=directory)
    data = content_of(rel_path, read_file(root, rel_path, MAX_NOTEBOOK_BYTES, directory))
    if len(data) > config().ingest_max_file_bytes:
        raise InvalidInput(f"Too large: {rel_path}", code="TOO_LARGE")
    return data


def digest_at(root: Path, rel_path: str, encoding: str = "") -> str:
    """Return the `digest_of` what is ingested of a file; "" if it cannot be read."""
    try:
        return digest_of(read_content(root, rel_path), encoding)
    except (NotFound, InvalidInput):
        return ""


def content_of(rel_path: str, data: bytes) -> bytes:
    """Return what is ingested of the bytes of a file, whose size is not checked."""
    text = notebook_text(data) if is_notebook_path(rel_path) else None
    return data if text is None else text.encode()


def _check_path(rel_path: str) -> None:
    parts = rel_path.split("/")
    if "\0" in rel_path or any(part in ("", ".", "..") for part in parts):
        raise InvalidInput("The path does not lead to a file below the folder", code="INVALID_PATH")
