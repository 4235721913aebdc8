"""The parse process, seen from its parent: started when needed, lost without harm."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from apps.ingest.syntax.pieces import Cut, Declaration, Piece

COMMAND = (sys.executable, "-m", "apps.ingest.syntax")
PROJECT = Path(__file__).resolve().parents[3]


class ProcessGone(Exception):
    """The process ended before it had answered: too long a parse, a crash, or `kill`."""


class ParseProcess:
    """One process. Not for use by several threads, but for `kill`."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        # It parses what strangers wrote: no key of ours goes along.
        environ = {"PYTHONPATH": os.pathsep.join([str(PROJECT), *filter(None, sys.path)])}
        self._process = subprocess.Popen(
            command, cwd=PROJECT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def parse(
        self, files: Sequence[tuple[str, bytes]], *, max_chars: int, seconds: float
    ) -> Iterator[Cut]:
        """What each file holds (grammar, UTF-8 source), in order. Raises ProcessGone."""
        request = {
            "max_chars": max_chars,
            "seconds": seconds,
            "files": [(grammar, len(source)) for grammar, source in files],
        }
        try:
            self._send([json.dumps(request).encode(), b"\n", *(source for _, source in files)])
            for _ in files:
                yield _cut(*json.loads(self._receive()))
        except (OSError, ValueError) as error:
            raise ProcessGone from error

    def _send(self, parts: Sequence[bytes]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(parts))
        self._process.stdin.flush()

    def _receive(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()  # b"" at the end, which is no JSON: a ValueError

    def kill(self) -> None:
        """End the process, from any thread; a `parse` under way raises ProcessGone."""
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


def _cut(pieces: list[Any], declarations: list[Any]) -> Cut:
    return Cut([_piece(*each) for each in pieces], [Declaration(*each) for each in declarations])


def _piece(start: int, end: int, symbol: str, names: list[str], signature: str) -> Piece:
    return Piece(start, end, symbol, tuple(names), signature)
