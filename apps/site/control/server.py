"""The server of the control socket: a thread that listens, and a thread for each request.

It does not use the event loop. One request is processed at a time; others get BUSY.
"""

import logging
import select
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.db import DatabaseError, connections

from apps.core.errors import CodeinfoError, Conflict, InvalidInput
from apps.core.system import posix
from apps.ingest.runs.job import RunCancelled
from apps.site.control.address import Listener, NotListening
from apps.site.control.lines import Lines
from apps.site.control.verbs import VERBS, Verb

logger = logging.getLogger("codeinfo.site")

# Time limit of reading a request, and of each write.
SECONDS = 10.0
LONGEST_REQUEST = 64_000
MOST_CONNECTIONS = 8
STOP_SECONDS = 15.0


class Control:
    """Listens from `start` to `stop`. Work is cancelled when its client disconnects, or by
    `stop`."""

    def __init__(self, folder: Path, verbs: Mapping[str, Verb] | None = None) -> None:
        self._folder = folder
        self._verbs = VERBS if verbs is None else verbs
        self._stopping = threading.Event()
        self._working = threading.Lock()
        self._listener: Listener | None = None
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start to listen. If that is not possible, log a warning."""
        try:
            self._listener = Listener(self._folder)
        except NotListening as error:
            facts = {"reason": str(error)}
            logger.warning("no control socket", extra={"context": facts})
            return
        self._begin(self._listen, self._listener.socket)

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(STOP_SECONDS)
        if self._listener:
            self._listener.close()

    def _begin(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, name="control", daemon=True)
        self._threads = [each for each in self._threads if each.is_alive()] + [thread]
        thread.start()

    def _listen(self, listener: socket.socket) -> None:
        while not self._stopping.is_set():
            if not _is_ready(listener, 0.2):
                continue
            with suppress(OSError):
                end, _ = listener.accept()
                served = sum(each.is_alive() for each in self._threads)
                if served > MOST_CONNECTIONS or not posix.is_own_user(end):
                    end.close()
                else:
                    self._begin(self._serve, end)

    def _serve(self, end: socket.socket) -> None:
        with end, suppress(OSError, EOFError, ValueError):
            end.settimeout(SECONDS)
            lines = Lines(end, LONGEST_REQUEST)
            request = lines.read()
            lines.write(self._answer(request, end, lines))

    def _answer(self, request: Mapping[str, Any], end: socket.socket, lines: Lines) -> Any:
        verb, options = self._verbs.get(str(request.get("verb"))), request.get("options", {})
        try:
            if verb is None or not isinstance(options, dict):
                raise InvalidInput("This version knows no such request")
            with _Exclusive(self._working):
                logger.info("control", extra={"context": {"verb": request["verb"]}})
                return {"result": verb(options, self._check(end), _reporter(lines))}
        except RunCancelled:
            return _error("STOPPED", "The server stopped, or the client disconnected.")
        except CodeinfoError as error:
            return _error(error.code, error.message)
        except (DatabaseError, OSError) as error:
            logger.warning("control failed", exc_info=error)
            return _error("FAILED", f"{type(error).__name__}: {error}")
        finally:
            connections.close_all()

    def _check(self, end: socket.socket) -> Callable[[], None]:
        def check() -> None:
            if self._stopping.is_set() or _is_gone(end):
                raise RunCancelled

        return check


class _Exclusive:
    """Acquires a lock without waiting. Raises Conflict BUSY if it is taken."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise Conflict("The server is at work on another command.", code="BUSY")

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


def _is_gone(end: socket.socket) -> bool:
    """Whether the client has closed its end. It sends nothing after its request."""
    try:
        return _is_ready(end, 0) and not end.recv(1, socket.MSG_PEEK)
    except OSError:
        return True


def _is_ready(end: socket.socket, seconds: float) -> bool:
    """Whether data can be read. Uses `poll`, as `select` fails for descriptors above 1023."""
    poll = select.poll()
    poll.register(end, select.POLLIN)
    return bool(poll.poll(seconds * 1_000))


def _reporter(lines: Lines) -> Callable[[str], None]:
    def report(message: str) -> None:
        with suppress(OSError):  # disconnected: the next check cancels the work
            lines.write({"progress": message})

    return report


def _error(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}
