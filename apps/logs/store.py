"""The log entries of this process: a bounded buffer in front of the log file.

Each entry has a sequence number, one higher than the last. Numbers continue after a restart: the
first entry or reader reads the tail of the log file. If the file was removed, numbers start at 1
again, which readers notice from a number lower than their own.
"""

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

from apps.core.concurrency.hub import hub
from apps.core.config import Config
from apps.logs.files import CLIENT_MARKER, LogFile
from apps.logs.formatting import entry_of, to_json_line
from apps.logs.types import LogEntry, LogQuery, Selection

TOPIC = "logs"
# The buffer is limited to LOG_BUFFER_MAX entries and to this size.
MAX_BYTES = 64 << 20


class LogStore:
    """Thread-safe. Callers clean entries first (`formatting.entry_of`, `serializers`).

    counts: level → number of entries in the buffer.
    """

    def __init__(self, file: LogFile, max_entries: int, max_bytes: int = MAX_BYTES) -> None:
        self.file = file
        self.counts: Counter[str] = Counter()
        self._most, self._most_bytes = max_entries, max_bytes
        self._entries: deque[LogEntry] = deque()
        self._bytes = 0
        self._last = 0
        self._resumed = False
        self._lock = threading.Lock()

    def add(self, entry: Mapping[str, Any], *, client: bool = False) -> int:
        """Number an entry, buffer it and write it to the file. Returns its number."""
        with self._lock:
            self._resume()
            self._last += 1
            numbered = {**entry, "sequence": self._last}
            line = to_json_line(numbered)
            self._add(LogEntry.of(numbered, line))
            self.file.write(to_json_line({**CLIENT_MARKER, **numbered}) if client else line)
            number = self._last
        hub.notify_here(TOPIC)
        return number

    def select(self, query: LogQuery, *, counts_skipped: bool = False) -> Selection:
        """Return the newest entries that match, at most `query.limit`."""
        with self._lock:
            self._resume()
            snapshot, last = list(self._entries), self._last
        matches: list[LogEntry] = []
        skipped = 0
        if counts_skipped:
            oldest = snapshot[0].sequence if snapshot else last + 1
            skipped = max(0, oldest - 1 - query.after)
        for entry in reversed(snapshot):
            is_full = len(matches) == query.limit
            if entry.sequence <= query.after or (is_full and not counts_skipped):
                break
            if not query.matches(entry):
                continue
            if is_full:
                skipped += 1
            else:
                matches.append(entry)
        return Selection(matches[::-1], last, skipped)

    def _resume(self) -> None:
        """Load the entries of an earlier process, once."""
        if self._resumed:
            return
        self._resumed = True
        for entry in self.file.tail():
            # Other processes, such as commands, number their own lines.
            if entry["sequence"] <= self._last:
                continue
            try:
                self._add(LogEntry.of(entry, to_json_line(entry)))
            except ValueError:
                continue  # written by another program: the time or a number is invalid
            self._last = entry["sequence"]

    def _add(self, entry: LogEntry) -> None:
        self._entries.append(entry)
        self.counts[entry.level] += 1
        self._bytes += entry.size
        while len(self._entries) > self._most or self._bytes > self._most_bytes:
            oldest = self._entries.popleft()
            self.counts[oldest.level] -= 1
            self._bytes -= oldest.size


class StoreHandler(logging.Handler):
    """A logging handler that adds records to the store.

    forward: called with each entry instead, in a worker: its server numbers and stores them
    """

    def __init__(self, store: LogStore) -> None:
        super().__init__()
        self.store = store
        self.forward: Callable[[Mapping[str, Any]], object] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            entry = entry_of(record)
        except (TypeError, ValueError, KeyError, AttributeError):
            # Report a message that does not match its arguments on the console, as logging does.
            self.handleError(record)
        else:
            (self.forward or self.store.add)(entry)

    def close(self) -> None:
        self.store.file.close()
        super().close()


process_store: LogStore | None = None


def handler(config: Config) -> StoreHandler:
    """Create the store of this process and its handler. Called by settings.LOGGING."""
    global process_store
    process_store = LogStore(LogFile(config), config.log_buffer_max)
    return StoreHandler(process_store)


def get_store() -> LogStore:
    """Return the store of this process. Raises RuntimeError before logging is configured."""
    if process_store is None:
        raise RuntimeError("logging is not configured yet")
    return process_store
