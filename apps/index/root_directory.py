"""Opening files below a root so that nothing can lead out of it.

Each component of a path is opened from the one before (openat) and never through a symbolic link,
so a folder swapped for a link between listing and reading is refused by the kernel, not by a check
that can be raced. Only regular files are opened: opening a FIFO or a device can block or do things.
"""

import errno
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound

# Folders are passed through, not listed: with O_PATH that needs no right to read them.
_PASS = getattr(os, "O_PATH", os.O_RDONLY)
FOLDER_FLAGS = _PASS | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LIST_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

# Folders deeper than this are left out: no project has them, and each level costs a call.
MAX_DEPTH = 100
# A root holds the folders of this many levels open, and four descriptors more: its own, the
# deepest folder's, the next one's and the file's. Descriptors are shared with all sockets.
HELD_LEVELS = 28

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
    """A few words on why a file could not be opened or read."""
    if isinstance(error, TooDeep):
        return TOO_DEEP
    if not error.errno:
        return UNREADABLE
    return REASONS.get(error.errno) or f"{UNREADABLE}: {os.strerror(error.errno)}"


def is_unreadable(error: OSError) -> bool:
    """Whether the file may be there all the same: a lack of rights or descriptors, a bad disk."""
    return not isinstance(error, SpecialFile) and reason_of(error).startswith(UNREADABLE)


class SpecialFile(OSError):
    """A FIFO, socket, device or folder where a regular file was asked for."""


class TooDeep(OSError):
    """A path with more than MAX_DEPTH folders."""


class Unreadable(InvalidInput):
    """A file that may be there, but cannot be read now."""

    code = "NOT_READABLE"

    def __init__(self, reason: str, rel_path: str) -> None:
        super().__init__(f"{reason}: {rel_path}")
        self.reason = reason


class Entry(NamedTuple):
    """One name in a folder, as the folder has it: a link is no folder."""

    name: str
    is_link: bool
    is_folder: bool


class RootDirectory:
    """A root, given by its real path, held open; its methods take paths relative to it.

    The upper folders of the last path stay open, so that walking files in order costs one open
    each. Not for use by several threads at once. Raises OSError.
    """

    def __init__(self, root: Path) -> None:
        self._root = _open_root(root)
        self._at: str | None = ""  # the folder that is open; None where one could not be opened
        # The open folders from the root down, and that of the last path where it lies below them.
        self._names: list[str] = []
        self._folders: list[int] = []
        self._deepest: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._leave(0)
        os.close(self._root)

    def identity(self) -> tuple[int, int]:
        """Device and inode of the root, which nothing else has while this is open."""
        found = os.fstat(self._root)
        return found.st_dev, found.st_ino

    def stat(self, path: str) -> os.stat_result:
        """What stands at a path, a link itself where it is one."""
        folder, name = self._enter(path)
        return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def open(self, path: str) -> tuple[int, os.stat_result]:
        """A descriptor, to be closed by the caller, and what it stands for."""
        folder, name = self._enter(path)
        _only_regular(os.stat(name, dir_fd=folder, follow_symlinks=False))
        descriptor = os.open(name, FILE_FLAGS, dir_fd=folder)
        try:
            found = os.fstat(descriptor)
            _only_regular(found)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor, found

    def look(self) -> None:
        """Raises OSError where the root cannot be listed."""
        descriptor = os.open(".", LIST_FLAGS, dir_fd=self._root)
        try:
            with os.scandir(descriptor) as found:
                next(found, None)
        finally:
            os.close(descriptor)

    def entries(self, folder: str) -> list[Entry]:
        """What is in a folder, whose path ends with a slash; "" is the root."""
        parent, _ = self._enter(folder)
        descriptor = os.open(".", LIST_FLAGS, dir_fd=parent)
        try:
            with os.scandir(descriptor) as found:
                return [
                    Entry(entry.name, entry.is_symlink(), entry.is_dir(follow_symlinks=False))
                    for entry in found
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
        return self._here(), name

    def _go_to(self, folders: list[str]) -> None:
        common = 0
        while (
            common < min(len(folders), len(self._names)) and folders[common] == self._names[common]
        ):
            common += 1
        self._leave(common)
        for folder in folders[common:]:
            inner = _open_folder(folder, self._here())
            if len(self._folders) < HELD_LEVELS:
                self._folders.append(inner)
                self._names.append(folder)
            else:
                self._close_deepest()
                self._deepest = inner

    def _leave(self, depth: int) -> None:
        self._close_deepest()
        while len(self._folders) > depth:
            os.close(self._folders.pop())
            self._names.pop()

    def _close_deepest(self) -> None:
        if self._deepest is not None:
            os.close(self._deepest)
            self._deepest = None

    def _here(self) -> int:
        if self._deepest is not None:
            return self._deepest
        return self._folders[-1] if self._folders else self._root


def _open_root(root: Path) -> int:
    """Every component of a real path is a folder, so a link among them was put there since."""
    here = os.open("/", FOLDER_FLAGS)
    for name in root.absolute().parts[1:]:
        try:
            inner = _open_folder(name, here)
        finally:
            os.close(here)
        here = inner
    return here


def _open_folder(name: str, parent: int) -> int:
    try:
        return os.open(name, FOLDER_FLAGS, dir_fd=parent)
    except NotADirectoryError:
        # What the kernel says of a link, too.
        if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, SYMBOLIC_LINK) from None
        raise


def _only_regular(found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, SYMBOLIC_LINK)
    if not stat.S_ISREG(found.st_mode):
        raise SpecialFile(SPECIAL)


def read_up_to(descriptor: int, limit: int) -> bytes:
    """At most `limit` bytes from where the descriptor stands."""
    parts: list[bytes] = []
    while limit > 0 and (part := os.read(descriptor, min(limit, 1 << 20))):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def read_file(root: Path, rel_path: str, limit: int | None = None) -> bytes:
    """The bytes of a regular file below `root`, no component of its path being a link.

    Raises NotFound where there is none, and InvalidInput for a path that leads out of the root
    (code INVALID_PATH), for what is not a readable regular file (NOT_READABLE; Unreadable where
    only reading fails) and for a file above `limit` bytes, INGEST_MAX_FILE_BYTES where none is
    given (TOO_LARGE).
    """
    _check_path(rel_path)
    limit = limit or config().ingest_max_file_bytes
    try:
        with RootDirectory(root) as beneath:
            descriptor, _ = beneath.open(rel_path)
            try:
                data = read_up_to(descriptor, limit + 1)
            finally:
                os.close(descriptor)
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


def _check_path(rel_path: str) -> None:
    parts = rel_path.split("/")
    if "\0" in rel_path or any(part in ("", ".", "..") for part in parts):
        raise InvalidInput("The path does not lead to a file below the folder", code="INVALID_PATH")
