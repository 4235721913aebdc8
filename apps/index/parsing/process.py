"""The parent's side of a parse process (`python -m apps.code.syntax`)."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from apps.code.callgraph.facts import Facts
from apps.code.syntax.pieces import Cut, Declaration, Occurrence, Piece
from apps.core.system import crashes, programs

COMMAND = (sys.executable, "-P", "-m", "apps.code.syntax")

Source = tuple[str, bytes]  # grammar and UTF-8 text
Command = tuple[str, ...]


class ProcessEnded(Exception):
    """The process ended before it answered: the parse timed out, it crashed, or `kill`."""


class ParseProcess:
    """One process. Only `kill` may be called from another thread."""

    def __init__(self, command: Command = COMMAND) -> None:
        self.command = command
        # CPU time of the last file; of one that has no result, the limit.
        self.seconds = 0.0
        # It parses untrusted files, so its environment has no secrets.
        self._process = programs.start(
            command,
            env=programs.import_path() | crashes.VARIABLES,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=crashes.file,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self.pid = self._process.pid

    def cut(self, files: Sequence[Source], *, max_chars: int, seconds: float) -> Iterator[Cut]:
        """Yield the pieces and declarations of each file, in order. Raises ProcessEnded.

        max_chars: largest piece
        seconds: CPU time per file, after which the process ends itself
        """
        for pieces, declarations, unread in self._request("cut", max_chars, files, seconds):
            yield Cut(
                [_piece(*piece) for piece in pieces],
                [Declaration(*declaration) for declaration in declarations],
                unread,
            )

    def find(
        self, files: Sequence[Source], *, name: str, seconds: float
    ) -> Iterator[list[Occurrence]]:
        """Yield the occurrences of the identifier `name` in each file. Raises ProcessEnded."""
        for occurrences in self._request("find", name, files, seconds):
            yield [Occurrence(*occurrence) for occurrence in occurrences]

    def facts(self, files: Sequence[Source], *, seconds: float) -> Iterator[Facts]:
        """Yield the facts of each file for the call graph, in order. Raises ProcessEnded."""
        for facts in self._request("facts", 0, files, seconds):
            yield Facts.from_json(facts)

    def _request(
        self, task: str, option: int | str, files: Sequence[Source], seconds: float
    ) -> Iterator[Any]:
        request = {
            "task": task,
            "value": option,
            "seconds": seconds,
            "files": [(grammar, len(source)) for grammar, source in files],
        }
        try:
            head = json.dumps(request).encode()
            self._stdin.write(b"".join([head, b"\n", *(source for _, source in files)]))
            self._stdin.flush()
            for _ in files:
                self.seconds = seconds
                self.seconds, value = json.loads(self.receive())
                yield value
        except (OSError, ValueError) as error:
            raise ProcessEnded from error

    def receive(self) -> bytes:
        return self._stdout.readline()  # b"" at the end, for which json raises ValueError

    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def timed_out(self) -> bool:
        """Whether the timer of a parse ended the process. Valid after `close`."""
        return self._process.returncode == -signal.SIGPROF

    def kill(self) -> None:
        """End the process, from any thread. A request in progress raises ProcessEnded."""
        self._process.kill()

    def close(self) -> None:
        """End the process and close its pipes."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._stdin, self._stdout):
            with suppress(OSError):  # it had unwritten data
                pipe.close()


def _piece(start: int, end: int, symbol: str, names: list[str], signature: str) -> Piece:
    return Piece(start, end, symbol, tuple(names), signature)
