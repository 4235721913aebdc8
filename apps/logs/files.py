"""The log file: opened, turned over at midnight, and read again after a restart."""

import json
import logging
import sys
from collections.abc import Iterator
from logging.handlers import TimedRotatingFileHandler
from pathlib import Path
from typing import Any

from apps.core.config import Config

DAYS_KEPT = 14
# What is read again at most: more lines than the buffer holds in any usual log.
TAIL_BYTES = 8 << 20
# How a line that a browser sent is told from the server's own, whatever it says of itself.
CLIENT_MARK = {"marker": "CLIENT_LOG"}


class LogFile:
    """Lines in, lines out. What goes wrong with the file never reaches those who log."""

    def __init__(self, config: Config) -> None:
        self.path = config.log_file_path
        self.problem: OSError | None = None
        # Whether the last line was cut off by a crash: the next must not continue it.
        self._torn = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.problem = error
        self._handler = _handler(self.path, rotate=config.log_file_rotate)
        self._handler.handleError = self._failed  # type: ignore[method-assign]

    def write(self, line: str) -> None:
        """One line, on disk when this returns."""
        if self._torn:
            self._torn, line = False, f"\n{line}"
        try:
            self._handler.emit(logging.makeLogRecord({"msg": "%s", "args": (line,)}))
        except OSError as error:
            self.problem = error

    def _failed(self, record: logging.LogRecord) -> None:
        problem = sys.exc_info()[1]
        self.problem = problem if isinstance(problem, OSError) else OSError(str(problem))

    def tail(self) -> list[dict[str, Any]]:
        """The last entries, oldest first: of this file and of the one before it."""
        left = TAIL_BYTES
        found: list[bytes] = []
        for path in (self.path, *_earlier(self.path)[:1]):
            content, from_start = _end_of(path, left)
            lines = content.splitlines()
            found = [*(lines if from_start else lines[1:]), *found]
            left -= len(content)
            if path == self.path:
                self._torn = content[-1:] not in (b"\n", b"")
        return list(_entries(found))

    def close(self) -> None:
        self._handler.close()


def _handler(path: Path, *, rotate: bool) -> logging.Handler:
    """The file is opened by the first line, so that looking at the product leaves none."""
    if rotate:
        return TimedRotatingFileHandler(
            path, when="midnight", backupCount=DAYS_KEPT, encoding="utf-8", delay=True
        )
    return logging.FileHandler(path, encoding="utf-8", delay=True)


def _earlier(path: Path) -> list[Path]:
    """The files of earlier days, newest first; their names end in the date."""
    return sorted(path.parent.glob(f"{path.name}.[0-9]*"), reverse=True)


def _end_of(path: Path, size: int) -> tuple[bytes, bool]:
    """The last `size` bytes of a file at most, and whether that is all of it."""
    try:
        with path.open("rb") as file:
            start = max(0, path.stat().st_size - size)
            file.seek(start)
            return file.read(size), start == 0
    except OSError:
        return b"", True


def _entries(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    """A line may be torn by a crash, or written by hand: it is left out."""
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if _is_whole(entry):
            yield {name: entry[name] for name in entry if name not in CLIENT_MARK}


def _is_whole(entry: Any) -> bool:
    texts = ("level", "message", "timestamp", "source")
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("sequence"), int)
        and all(isinstance(entry.get(name), str) for name in texts)
    )
