"""Binds and finds the control socket.

The address of a Unix socket has at most 107 bytes (unix(7); 104 on macOS). For a longer path, the
folder is opened, and the address is below `/proc/self/fd/<n>` (Linux).
"""

import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NAME, LOCK = "control.sock", "control.lock"
LONGEST = 100
DESCRIPTORS = Path("/proc/self/fd")
# struct ucred: pid, uid and gid of the other end (unix(7), SO_PEERCRED).
_CREDENTIALS = struct.Struct("3i")


class NotListening(Exception):
    """The control socket cannot be used; the message is the reason."""


@contextmanager
def _address(folder: Path) -> Iterator[str]:
    """Yield a short address of the socket in `folder`. Raises OSError and NotListening."""
    path = folder.absolute() / NAME
    if len(os.fsencode(path)) <= LONGEST:
        yield str(path)
        return
    if not DESCRIPTORS.is_dir():
        raise NotListening(f"the path {path} is too long for a socket on this system")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield str(DESCRIPTORS / str(descriptor) / NAME)
    finally:
        os.close(descriptor)


class Listener:
    """The listening socket of a data folder. If several servers share the folder, a lock decides
    which one listens. The socket of a killed server is replaced."""

    def __init__(self, folder: Path) -> None:
        """Raises NotListening."""
        self._path = folder.absolute() / NAME
        self._lock = -1
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._take(folder)
            self._path.unlink(missing_ok=True)
            with _address(folder) as address:
                self.socket.bind(address)
            self._path.chmod(0o600)
            self.socket.listen(8)
        except OSError as error:
            self._release()
            raise NotListening(error.strerror or str(error)) from error
        except NotListening:
            self._release()
            raise

    def _take(self, folder: Path) -> None:
        self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise NotListening("another server of this data folder has it") from None

    def close(self) -> None:
        """Remove the socket."""
        with suppress(OSError):
            self._path.unlink()
        self._release()

    def _release(self) -> None:
        self.socket.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def connect(folder: Path) -> socket.socket | None:
    """Connect to the server of a data folder. Return None if none listens."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _address(folder) as address:
            end.connect(address)
    except (OSError, NotListening):
        end.close()
        return None
    return end


def is_own_user(end: socket.socket) -> bool:
    """Whether the other end is a process of this user or of root. True on systems without
    SO_PEERCRED, where the file mode protects the socket."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(credentials)
    return uid in (0, os.geteuid())
