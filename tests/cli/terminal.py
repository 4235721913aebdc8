"""A verb on a pseudo-terminal, with what its user sees and types."""

import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

SECONDS = 60.0
CTRL_C = "\x03"
# In a session of its own, the terminal becomes the controlling one: Ctrl-C is a signal.
CONTROL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execv(sys.argv[1], sys.argv[1:])"
)


class Terminal:
    """A context manager: the process is killed at its end if it is still there."""

    def __init__(
        self, command: Sequence[str], cwd: Path, environment: dict[str, str], columns: int = 80
    ) -> None:
        self._own, other = os.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.seen = ""
        self._process = subprocess.Popen(
            [sys.executable, "-c", CONTROL, *command],
            cwd=cwd,
            env=environment,
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
        )
        os.close(other)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._own)

    def until(self, text: str) -> str:
        """Read until the output has `text`, for SECONDS at most. Return all of it."""
        end = time.monotonic() + SECONDS
        while text not in self.seen:
            is_open = time.monotonic() < end and self._read()
            assert is_open, f"{text!r} did not appear in {self.seen[-2_000:]!r}"
        return self.seen

    def type(self, text: str) -> None:
        os.write(self._own, text.encode())

    def end(self) -> int:
        """Read until the process ends. Return its exit status."""
        while self._read():
            pass
        return self._process.wait(SECONDS)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._own], [], [], SECONDS)
        assert ready, f"nothing happened after {self.seen!r}"
        try:
            data = os.read(self._own, 65_536)
        except OSError:  # EIO: the other end is closed
            return False
        self.seen += data.decode(errors="replace")
        return bool(data)
