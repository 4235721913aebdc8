"""The log file: write, rotate at midnight, and read the tail after a restart."""

import json
import logging
import sys
from collections.abc import Iterator
from logging.handlers import TimedRotatingFileHandler
from pathlib import Path
from typing import Any

from apps.core.config import Config

RETENTION_DAYS = 14
# At most so many bytes are read after a restart: usually more lines than the buffer holds.
TAIL_BYTES = 8 << 20
# Marks the lines of clients in the file. A client cannot remove or forge it.
CLIENT_MARKER = {"marker": "CLIENT_LOG"}


class LogFile:
    """A log file of JSON lines. An OSError never reaches the caller; it is kept in `problem`."""

    def __init__(self, config: Config) -> None:
        self.path = config.log_file_path
        self.problem: OSError | None = None
        # True if a crash truncated the last line: the next line must not continue it.
        self._truncated = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.problem = error
        self._handler = _handler(self.path, rotate=config.log_file_rotate)
        self._handler.handleError = self._failed  # type: ignore[method-assign]

    def write(self, line: str) -> None:
        """Append one line and flush it."""
        if self._truncated:
            self._truncated, line = False, f"\n{line}"
        try:
            self._handler.emit(logging.makeLogRecord({"msg": "%s", "args": (line,)}))
        except OSError as error:
            self.problem = error

    def _failed(self, record: logging.LogRecord) -> None:
        problem = sys.exc_info()[1]
        self.problem = problem if isinstance(problem, OSError) else OSError(str(problem))

    def tail(self) -> list[dict[str, Any]]:
        """Return the last entries of this file and the previous one, oldest first."""
        remaining = TAIL_BYTES
        collected: list[bytes] = []
        # The names of rotated files end in their date.
        rotated = sorted(self.path.parent.glob(f"{self.path.name}.[0-9]*"))
        for path in (self.path, *rotated[-1:]):
            content, from_start = _read_tail(path, remaining)
            lines = content.splitlines()
            collected = [*(lines if from_start else lines[1:]), *collected]
            remaining -= len(content)
            if path == self.path:
                self._truncated = content[-1:] not in (b"\n", b"")
        return list(_entries(collected))

    def close(self) -> None:
        self._handler.close()


def _handler(path: Path, *, rotate: bool) -> logging.Handler:
    """Create a handler that opens the file with the first line, not before."""
    if rotate:
        return TimedRotatingFileHandler(
            path, when="midnight", backupCount=RETENTION_DAYS, encoding="utf-8", delay=True
        )
    return logging.FileHandler(path, encoding="utf-8", delay=True)


def _read_tail(path: Path, size: int) -> tuple[bytes, bool]:
    """Return at most the last `size` bytes of a file, and whether that is the whole file."""
    try:
        with path.open("rb") as file:
            start = max(0, path.stat().st_size - size)
            file.seek(start)
            return file.read(size), start == 0
    except OSError:
        return b"", True


def _entries(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    """Parse lines; skip those that a crash truncated or another program wrote."""
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if _is_entry(entry):
            yield {name: entry[name] for name in entry if name not in CLIENT_MARKER}


def _is_entry(entry: Any) -> bool:
    texts = ("level", "message", "timestamp", "source")
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("sequence"), int)
        and all(isinstance(entry.get(name), str) for name in texts)
    )
