"""The tokens of source text, from a process that can be killed.

Many of Pygments' lexers take time that grows with the square of a text, or faster: 8,000 newlines
hold some of them up for seconds. Within this process nothing else would run meanwhile.
"""

import atexit
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress

from apps.core import programs

COMMAND = (sys.executable, "-P", "-m", "apps.retrieval.lexing")
# What people write takes a tenth of it, a large file included.
SECONDS = 2.0
# After so many texts that took too long within a minute, everything is plain until it is over: an
# answer may hold fifty of them.
MOST_GIVEN_UP, MINUTE = 3, 60.0
REMEMBERED = 256

Tokens = Sequence[tuple[str, str]]


class LexerProcess:
    """Asks one process, which is started when it is first needed and again after it was killed.

    Safe from any thread; one text at a time.
    """

    def __init__(self, command: Sequence[str] = COMMAND, seconds: float = SECONDS) -> None:
        self._command, self._seconds = command, seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        # Texts that took too long; they are not tried again.
        self._given_up: OrderedDict[tuple[str, int], float] = OrderedDict()
        atexit.register(self.close)

    def tokens(self, text: str, lexer: str) -> Tokens:
        """(css class, text) of each token, by Pygments' lexer of that name. One token without a
        class where they cannot be had in time."""
        plain = (("", text),)
        key = (lexer, hash(text))
        if key in self._given_up or self._is_resting():
            return plain
        if not self._lock.acquire(timeout=self._seconds):
            return plain
        try:
            return self._ask({"lexer": lexer, "text": text})
        except (OSError, ValueError, EOFError):
            self._end()
            self._given_up[key] = time.monotonic()
            while len(self._given_up) > REMEMBERED:
                self._given_up.popitem(last=False)
            return plain
        finally:
            self._lock.release()

    def _is_resting(self) -> bool:
        since = time.monotonic() - MINUTE
        latest = [at for at in list(self._given_up.values())[-MOST_GIVEN_UP:] if at > since]
        return len(latest) == MOST_GIVEN_UP

    def close(self) -> None:
        """End the process; the next text starts another."""
        with self._lock:
            self._end()

    def _ask(self, job: dict[str, str]) -> Tokens:
        """Raises OSError or ValueError where there is no answer in time."""
        process = self._running()
        assert process.stdin is not None
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
        return [(kind, value) for kind, value in json.loads(self._line(process))]

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = programs.start(
                self._command,
                env=programs.import_path(),
                own=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is not for it
            )
        return self._process

    def _line(self, process: "subprocess.Popen[bytes]") -> bytes:
        """The next line that the process writes. Raises TimeoutError."""
        assert process.stdout is not None
        deadline = time.monotonic() + self._seconds
        parts: list[bytes] = []
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not parts or not parts[-1].endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError
                part = os.read(process.stdout.fileno(), 1 << 20)
                if not part:
                    raise EOFError
                parts.append(part)
        return b"".join(parts)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


lexers = LexerProcess()
