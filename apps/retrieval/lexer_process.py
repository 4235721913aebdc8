"""The tokens of source text, from a process that can be killed.

Many of Pygments' lexers take quadratic time or worse: some need seconds for 8,000 newlines. In this
process they would hold the interpreter lock meanwhile.
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
# Time limit of one text. Files that people write take a tenth of it, even large ones.
SECONDS = 2.0
# After MAX_TIMEOUTS texts within TIMEOUT_WINDOW seconds the lexers are not used until it ends: an
# answer may contain fifty texts.
MAX_TIMEOUTS, TIMEOUT_WINDOW = 3, 60.0
# Texts that timed out and are not tried again.
MAX_REMEMBERED = 256

Tokens = Sequence[tuple[str, str]]


class LexerProcess:
    """A process that lexes one text at a time. It starts with the first text, and again with the
    next text after it was killed. Thread-safe."""

    def __init__(self, command: Sequence[str] = COMMAND, seconds: float = SECONDS) -> None:
        self._command, self._seconds = command, seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        # By lexer and hash of the text: when it timed out.
        self._timeouts: OrderedDict[tuple[str, int], float] = OrderedDict()
        atexit.register(self.close)

    def tokens(self, text: str, lexer: str) -> Tokens:
        """(CSS class, text) of each token, by Pygments' lexer of that name. On a failure or timeout
        the text is one token without a class."""
        plain = (("", text),)
        key = (lexer, hash(text))
        if key in self._timeouts or self._is_suspended():
            return plain
        if not self._lock.acquire(timeout=self._seconds):
            return plain
        try:
            return self._lex({"lexer": lexer, "text": text})
        except (OSError, ValueError, EOFError):
            self._kill()
            self._timeouts[key] = time.monotonic()
            while len(self._timeouts) > MAX_REMEMBERED:
                self._timeouts.popitem(last=False)
            return plain
        finally:
            self._lock.release()

    def _is_suspended(self) -> bool:
        since = time.monotonic() - TIMEOUT_WINDOW
        latest = [at for at in list(self._timeouts.values())[-MAX_TIMEOUTS:] if at > since]
        return len(latest) == MAX_TIMEOUTS

    def close(self) -> None:
        """End the process. The next text starts another."""
        with self._lock:
            self._kill()

    def _lex(self, job: dict[str, str]) -> Tokens:
        """Send a job and read its tokens. Raises TimeoutError, EOFError, OSError or ValueError."""
        process = self._running()
        assert process.stdin is not None
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
        return [(kind, value) for kind, value in json.loads(self._line(process))]

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            self._kill()
            self._process = programs.start(
                self._command,
                env=programs.import_path(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C must not reach it
            )
        return self._process

    def _line(self, process: "subprocess.Popen[bytes]") -> bytes:
        """The next line that the process writes. Raises TimeoutError and EOFError."""
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

    def _kill(self) -> None:
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
