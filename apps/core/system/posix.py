"""What only POSIX systems have: locks, descriptors of folders, flags of open(2), user ids, limits.

codeinfo serves on Linux, macOS and WSL. The other modules reach these functions through this one
alone (tests/house/test_posix.py), so that all of them import on any system. There a function of
this module raises Unsupported, or returns what its docstring says; a flag that does not exist is 0.
"""

import errno
import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
    import resource
except ImportError:  # Windows
    fcntl = resource = None  # type: ignore[assignment]

O_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)
O_DIRECTORY: int = getattr(os, "O_DIRECTORY", 0)
O_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
O_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
# Opens a folder that is only passed through, which needs no right to read it (Linux).
O_PATH: int = getattr(os, "O_PATH", os.O_RDONLY)

# Between two tries of `lock_within`.
RETRY_SECONDS = 0.02


class Unsupported(OSError):
    """This operating system has no such function."""


def _function(name: str) -> Callable[..., Any]:
    """Return a function of `os`, or one that raises Unsupported."""

    def missing(*args: object, **options: object) -> Any:
        raise Unsupported(f"This system has no {name}: use codeinfo on Linux, macOS or WSL.")

    function: Callable[..., Any] = getattr(os, name, missing)
    return function


# As those of `os`. Hot: a reader of texts calls `pread` for each block.
pread: Callable[[int, int, int], bytes] = _function("pread")
pwrite: Callable[[int, bytes, int], int] = _function("pwrite")
fchmod: Callable[[int, int], None] = _function("fchmod")
fwalk: Callable[[Path], Iterator[tuple[str, list[str], list[str], int]]] = _function("fwalk")


# Files


def open_private(path: Path) -> BinaryIO:
    """Open a file for reading and writing; create it with mode 0600. Raises OSError."""
    return open(os.open(path, os.O_RDWR | os.O_CREAT | O_CLOEXEC, 0o600), "r+b")


def open_nofollow(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a file with mode 0600 if it is created; a link as its last component is an error.
    Return the descriptor. Raises OSError.

    flags: of open(2)
    """
    return os.open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0o600)


def open_at(folder: int, name: str, flags: int) -> int:
    """Open an entry of an open folder (openat). Return the descriptor. Raises OSError."""
    _need_descriptors()
    return os.open(name, flags | O_NOFOLLOW | O_CLOEXEC, dir_fd=folder)


def stat_at(folder: int, name: str) -> os.stat_result:
    """Return the status of an entry of an open folder, or of the link that it is. Raises
    OSError."""
    _need_descriptors()
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def open_folder(path: Path) -> int:
    """Open a folder. Return the descriptor. Raises OSError."""
    _need_descriptors()
    return os.open(path, os.O_RDONLY | O_DIRECTORY | O_CLOEXEC)


def enter_folder(name: str, parent: int | None = None) -> int:
    """Open a folder that is only passed through; a link is an OSError ELOOP. Return the
    descriptor. Raises OSError.

    parent: descriptor of the folder that it is an entry of; None for a path
    """
    _need_descriptors()
    try:
        return os.open(name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, dir_fd=parent)
    except NotADirectoryError:
        # The kernel reports a link in this way, too.
        if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


def _need_descriptors() -> None:
    if not O_DIRECTORY:
        raise Unsupported("This system opens no folders: use codeinfo on Linux, macOS or WSL.")


def sync_folder(folder: Path) -> None:
    """Make new names in a folder survive a power cut. Raises OSError."""
    descriptor = open_folder(folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, if they are missing. It survives a power cut. Raises
    OSError."""
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        sync_folder(folder.parent)


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file, with mode 0600. After a power cut it has the old content or the new one.
    Raises OSError."""
    new = path.with_name(f".{path.name}")
    new.unlink(missing_ok=True)
    with open_private(new) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(path.parent)


def is_read_only(folder: Path) -> bool:
    """Return True if a folder is on a disk that was mounted read-only; False if that is not known.
    Raises OSError."""
    if not hasattr(os, "statvfs"):
        return False
    return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def free_files(folder: Path) -> float:
    """Return how many files can be created on the disk of a folder; `inf` if that is not limited,
    or not known. Raises OSError."""
    if not hasattr(os, "statvfs"):
        return float("inf")
    # A disk that makes inodes as it needs them, such as one of btrfs, has no number of them.
    disk = os.statvfs(folder)
    return disk.f_favail if disk.f_files else float("inf")


# Locks


def lock(file: BinaryIO | int, *, shared: bool = False, wait: bool = True) -> bool:
    """Lock an open file, as flock(2) does, until it is closed or its process ends. Return False if
    another process has it and `wait` is False. Raises OSError."""
    if fcntl is None:
        raise Unsupported("Files cannot be locked on this system.")
    operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, operation if wait else operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_within(file: BinaryIO | int, seconds: float, *, shared: bool = False) -> bool:
    """As `lock`. Return False if another process still has it after some seconds."""
    until = time.monotonic() + seconds
    while not lock(file, shared=shared, wait=False):
        if time.monotonic() >= until:
            return False
        time.sleep(RETRY_SECONDS)
    return True


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Wait until no other thread or process is in such a block. Raises OSError."""
    descriptor = open_folder(folder)
    try:
        lock(descriptor)
        yield
    finally:
        os.close(descriptor)


# Users and processes


def user_id() -> int:
    """Return the effective user id of this process; 0 on systems without."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


def is_running(pid: int) -> bool:
    """Return False if the process has ended, also if its parent has not taken note of that yet (a
    zombie; known on Linux). Return True if that is not known."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:1]
    except OSError:
        return True
    return state != [b"Z"]


def lower_priority(nice: int) -> None:
    """Raise the nice value of this process to `nice`. Does nothing on systems without."""
    if hasattr(os, "nice"):
        os.nice(max(0, nice - os.nice(0)))


def lower_priority_of_session(nice: int) -> None:
    """Have the session that this process leads give way to others, where Linux schedules each as a
    group: nice values count within one only (sched(7), "The autogroup feature")."""
    if nice and hasattr(os, "getsid") and os.getsid(0) == os.getpid():
        with suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(nice))


def leave_one_core() -> None:
    """Leave one core to other processes, if there are several. Applies to threads that start
    later. Does nothing on systems without sched_setaffinity."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[:-1] or cores)


def file_limits() -> tuple[float, float] | None:
    """Return the soft and the hard limit of open files of this process; `inf`: none. None on
    systems without."""
    if resource is None or sys.platform == "win32":
        return None
    soft, hard = (
        float("inf") if limit == resource.RLIM_INFINITY else limit
        for limit in resource.getrlimit(resource.RLIMIT_NOFILE)
    )
    return soft, hard


def raise_file_limit(soft: int) -> None:
    """Set the soft limit of open files of this process. Raises OSError and ValueError."""
    if resource is not None and sys.platform != "win32":
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def kill_group(pid: int) -> None:
    """Kill the processes of a group, which the process `pid` leads. No effect where there are no
    groups, or no such one."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
