"""How the SDK starts Codex' program: as every other program is started, and read in bounded lines.

The SDK opens the process by itself and reads whole lines, which hold whatever Codex relays of its
model server. So `server` gives it this in place of `subprocess`.
"""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TextIO

from openai_codex.errors import TransportClosedError

from apps.core import programs
from apps.core.config import config
from apps.core.limits import named

# A message may repeat a whole item: a tool's result, or all the text of an answer.
FRAMES_IN_A_LINE = 16
# Of what it writes to its log; a longer line is read in pieces.
MAX_LOG_LINE = 10_000


class LineTooLong(TransportClosedError):
    """Codex wrote a line past the limit; nothing more is read from this process."""


class _Messages:
    """Codex' standard output."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def readline(self) -> str:
        most = FRAMES_IN_A_LINE * config().max_frame_bytes
        line = self._stream.readline(most)
        if len(line) >= most and not line.endswith("\n"):
            raise LineTooLong(
                f"Codex sent a message of more than {most} bytes, {FRAMES_IN_A_LINE} times "
                f"{named('max_frame_bytes')}."
            )
        return line

    def close(self) -> None:
        self._stream.close()


class _Log:
    """Codex' standard error."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[str]:
        return iter(lambda: self._stream.readline(MAX_LOG_LINE), "")

    def close(self) -> None:
        self._stream.close()


def _start(
    command: Sequence[str], *, env: Mapping[str, str], cwd: str | None = None, **pipes: Any
) -> Any:
    process: Any = programs.start(command, env=env, cwd=cwd or "/", **pipes)
    process.stdout, process.stderr = _Messages(process.stdout), _Log(process.stderr)
    return process


# What of the module `subprocess` the SDK uses.
SUBPROCESS = SimpleNamespace(PIPE=subprocess.PIPE, Popen=_start)
