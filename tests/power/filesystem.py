"""A file system that passes all through to a folder, and records what programs write and sync:
`python -m tests.power.filesystem BACKING MOUNTPOINT TRACE`. It writes the trace when it is
unmounted.

The value of an extended attribute that a program sets is recorded as a promise: so a test says what
it was promised, in the order of the writes.
"""

import errno
import os
import pickle
import sys
from itertools import count
from pathlib import Path
from typing import Any

import mfusepy as fuse

from tests.power.trace import Event


class Recorder(fuse.Operations):  # type: ignore[misc]
    """Called by one thread, one operation after another."""

    use_ns = True

    def __init__(self, backing: Path) -> None:
        self._backing = str(backing)
        self._numbers: dict[int, int] = {}  # inode → number, of what is created
        self._next = count(1 << 62)
        self.events: list[Event] = []

    def real(self, path: str) -> str:
        return self._backing + path

    def _note(self, what: str, *values: Any) -> None:
        self.events.append(Event(what, values))

    def _number(self, status: os.stat_result) -> int:
        return self._numbers.get(status.st_ino, status.st_ino)

    def _place(self, path: str) -> tuple[int, str]:
        """The number of the folder, and the name in it."""
        parent, name = os.path.split(self.real(path))
        return self._number(os.stat(parent)), name

    def _created(self, path: str, status: os.stat_result, *, is_folder: bool) -> None:
        # Its inode may be that of a file that was deleted.
        self._numbers[status.st_ino] = number = next(self._next)
        self._note("create", *self._place(path), number, is_folder)

    # --- what is recorded ---

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        descriptor = os.open(self.real(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        self._created(path, os.fstat(descriptor), is_folder=False)
        return descriptor

    def mkdir(self, path: str, mode: int) -> int:
        os.mkdir(self.real(path), mode)
        self._created(path, os.stat(self.real(path)), is_folder=True)
        return 0

    def unlink(self, path: str) -> int:
        os.unlink(self.real(path))
        if not _is_hidden(path):
            self._note("unlink", *self._place(path))
        return 0

    def rmdir(self, path: str) -> int:
        os.rmdir(self.real(path))
        self._note("unlink", *self._place(path))
        return 0

    def rename(self, old: str, new: str) -> int:
        os.rename(self.real(old), self.real(new))
        if _is_hidden(new):
            self._note("unlink", *self._place(old))
        else:
            self._note("rename", *self._place(old), *self._place(new))
        return 0

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        written = os.pwrite(fh, data, offset)
        self._note("write", self._number(os.fstat(fh)), offset, data[:written])
        return written

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        os.truncate(self.real(path), length)
        self._note("truncate", self._number(os.stat(self.real(path))), length)
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        self._note("sync", self._number(os.fstat(fh)))
        return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        self._note("sync_folder", self._number(os.stat(self.real(path))))
        return 0

    def setxattr(self, path: str, name: str, value: bytes, options: int, position: int = 0) -> int:
        self._note("promise", value.decode())
        return 0

    # --- what is not ---

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        status = os.lstat(self.real(path))
        names = [name for name in dir(status) if name.startswith("st_")]
        found = {name: getattr(status, name) for name in names}
        return found | {f"st_{kind}time": found[f"st_{kind}time_ns"] for kind in "amc"}

    def readdir(self, path: str, fh: int) -> list[str]:
        return [".", "..", *os.listdir(self.real(path))]

    def open(self, path: str, flags: int) -> int:
        # The kernel reads and truncates through a descriptor that a program only writes to.
        access = os.O_RDONLY if flags & os.O_ACCMODE == os.O_RDONLY else os.O_RDWR
        if flags & os.O_TRUNC:
            self.truncate(path, 0)
        return os.open(self.real(path), access)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return os.pread(fh, size, offset)

    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0

    def flush(self, path: str, fh: int) -> int:
        return 0

    def chmod(self, path: str, mode: int) -> int:
        os.chmod(self.real(path), mode)
        return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        os.chown(self.real(path), uid, gid)
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        os.utime(self.real(path), ns=times)
        return 0

    def statfs(self, path: str) -> dict[str, Any]:
        status = os.statvfs(self.real(path))
        return {name: getattr(status, name) for name in dir(status) if name.startswith("f_")}

    def symlink(self, target: str, source: str) -> int:
        raise fuse.FuseOSError(errno.EPERM)

    link = symlink


def _is_hidden(path: str) -> bool:
    """Whether it is the name that FUSE gives to a file that is deleted while it is open."""
    return os.path.basename(path).startswith(".fuse_hidden")


def main() -> None:
    backing, mountpoint, trace = sys.argv[1:]
    recorder = Recorder(Path(backing))
    fuse.FUSE(recorder, mountpoint, foreground=True, nothreads=True, default_permissions=True)
    with open(trace, "wb") as file:
        pickle.dump(recorder.events, file)


if __name__ == "__main__":
    main()
