"""Binds and finds the control socket.

The address of a Unix socket has at most 107 bytes (unix(7); 104 on macOS). For a longer path, the
folder is opened, and the address is below `/proc/self/fd/<n>` (Linux).
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from apps.core.system import posix

NAME, LOCK = "control.sock", "control.lock"
LONGEST = 100
DESCRIPTORS = Path("/proc/self/fd")


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
    descriptor = posix.open_folder(folder)
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
        self._lock: BinaryIO | None = None
        self.socket = posix.unix_socket()
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
        self._lock = posix.open_private(folder / LOCK)
        if not posix.lock(self._lock, wait=False):
            raise NotListening("another server of this data folder has it")

    def close(self) -> None:
        """Remove the socket."""
        with suppress(OSError):
            self._path.unlink()
        self._release()

    def _release(self) -> None:
        self.socket.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def connect(folder: Path) -> socket.socket | None:
    """Connect to the server of a data folder. Return None if none listens."""
    end = posix.unix_socket()
    try:
        with _address(folder) as address:
            end.connect(address)
    except (OSError, NotListening):
        end.close()
        return None
    return end
