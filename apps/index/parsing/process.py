"""The parse process, seen from its parent: started when needed, lost without harm."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from apps.code.syntax.pieces import Cut, Declaration, Occurrence, Piece
from apps.core import programs

COMMAND = (sys.executable, "-P", "-m", "apps.code.syntax")
IN_BACKGROUND = (*COMMAND, "--background")

Source = tuple[str, bytes]  # grammar and UTF-8 text
Command = tuple[str, ...]


class ProcessGone(Exception):
    """The process ended before it had answered: too long a parse, a crash, or `kill`."""


class ParseProcess:
    """One process. Not for use by several threads, but for `kill`."""

    def __init__(self, command: Command = COMMAND) -> None:
        self.command = command
        # It parses what strangers wrote: no key of ours goes along.
        self._process = programs.start(
            command,
            env=programs.import_path(),
            own=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def cut(self, files: Sequence[Source], *, max_chars: int, seconds: float) -> Iterator[Cut]:
        """What each file holds, in order. Raises ProcessGone."""
        for pieces, declarations in self._ask("cut", max_chars, files, seconds):
            yield Cut(
                [_piece(*each) for each in pieces], [Declaration(*each) for each in declarations]
            )

    def find(
        self, files: Sequence[Source], *, name: str, seconds: float
    ) -> Iterator[list[Occurrence]]:
        """Where each file has the identifier `name`, in order. Raises ProcessGone."""
        for found in self._ask("find", name, files, seconds):
            yield [Occurrence(*each) for each in found]

    def _ask(
        self, task: str, value: int | str, files: Sequence[Source], seconds: float
    ) -> Iterator[Any]:
        request = {
            "task": task,
            "value": value,
            "seconds": seconds,
            "files": [(grammar, len(source)) for grammar, source in files],
        }
        try:
            self._send([json.dumps(request).encode(), b"\n", *(source for _, source in files)])
            for _ in files:
                yield json.loads(self._receive())
        except (OSError, ValueError) as error:
            raise ProcessGone from error

    def _send(self, parts: Sequence[bytes]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(parts))
        self._process.stdin.flush()

    def _receive(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()  # b"" at the end, which is no JSON: a ValueError

    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def took_too_long(self) -> bool:
        """Whether the timer of a parse has ended the process; known once it is closed."""
        return self._process.returncode == -signal.SIGPROF

    def kill(self) -> None:
        """End the process, from any thread; what it is asked under way raises ProcessGone."""
        self._process.kill()

    def close(self) -> None:
        """End the process and let go of its pipes."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue  # what was still to be written has nobody to read it


def _piece(start: int, end: int, symbol: str, names: list[str], signature: str) -> Piece:
    return Piece(start, end, symbol, tuple(names), signature)
