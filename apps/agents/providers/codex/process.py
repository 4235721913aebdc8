"""Start Codex's program through `apps.core.system.programs` and read its output in bounded lines.

The SDK starts the process itself and reads lines of unlimited length, which may contain data of the
model server. `server` therefore replaces the SDK's `subprocess` by `SUBPROCESS`.
"""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TextIO

from openai_codex.errors import TransportClosedError

from apps.core.http import limits
from apps.core.system import programs

# A message may repeat a complete item: a tool's result, or the text of an answer.
FRAMES_IN_A_LINE = 16
# A longer line of its log is read in parts.
MAX_LOG_LINE = 10_000


class LineTooLong(TransportClosedError):
    """Codex wrote a line past the limit. The process is not read any further."""


class _Output:
    """An output of Codex: the SDK reads messages from the standard one, and iterates its log."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.close = stream.close

    def readline(self) -> str:
        most = FRAMES_IN_A_LINE * limits.MAX_FRAME_BYTES
        line = self._stream.readline(most)
        if len(line) >= most and not line.endswith("\n"):
            raise LineTooLong(f"Codex sent a message of more than {most} bytes.")
        return line

    def __iter__(self) -> Iterator[str]:
        return iter(lambda: self._stream.readline(MAX_LOG_LINE), "")


def _start(
    command: Sequence[str], *, env: Mapping[str, str], cwd: str | None = None, **pipes: Any
) -> Any:
    process: Any = programs.start(command, env=env, cwd=cwd or "/", **pipes)
    process.stdout, process.stderr = _Output(process.stdout), _Output(process.stderr)
    return process


# The names of `subprocess` that the SDK uses.
SUBPROCESS = SimpleNamespace(PIPE=subprocess.PIPE, Popen=_start)
