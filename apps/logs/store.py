"""The entries of this process: a bounded buffer before the log file.

Each entry has a number, one higher than the one before, also after a restart: the first entry or
reader has the end of the log file read again. (A log file that was taken away begins anew at 1;
readers see that from a number lower than the one they ask for.)
"""

import logging
import threading
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

from apps.core.config import Config
from apps.core.hub import hub
from apps.logs.files import CLIENT_MARK, LogFile
from apps.logs.formatting import entry_of, spelled
from apps.logs.types import Entry, LogQuery, Selection

TOPIC = "logs"
# The buffer is bounded in entries by LOG_BUFFER_MAX, and whatever their size by this.
MOST_BYTES = 64 << 20


class LogStore:
    """Safe from any thread. Entries come cleaned (`formatting.entry_of`, `serializers`)."""

    def __init__(self, file: LogFile, most: int, most_bytes: int = MOST_BYTES) -> None:
        self.file = file
        self.counts: Counter[str] = Counter()
        self._most, self._most_bytes = most, most_bytes
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._last = 0
        self._resumed = False
        self._lock = threading.Lock()

    def keep(self, entry: Mapping[str, Any], *, client: bool = False) -> int:
        """Number an entry, keep it and write it to the file; its number."""
        with self._lock:
            self._resume()
            self._last += 1
            numbered = {**entry, "sequence": self._last}
            line = spelled(numbered)
            self._add(Entry.of(numbered, line))
            self.file.write(spelled({**CLIENT_MARK, **numbered}) if client else line)
            number = self._last
        hub.notify_here(TOPIC)
        return number

    def select(self, query: LogQuery) -> Selection:
        """The newest entries that match, `query.limit` at most."""
        with self._lock:
            self._resume()
            snapshot, last = list(self._entries), self._last
        found: list[Entry] = []
        for entry in reversed(snapshot):
            if entry.sequence <= query.after or len(found) == query.limit:
                break
            if query.matches(entry):
                found.append(entry)
        return Selection(found[::-1], last)

    def _resume(self) -> None:
        """What an earlier process wrote comes back, with its numbers."""
        if self._resumed:
            return
        self._resumed = True
        for entry in self.file.tail():
            # Other processes, such as commands, may have numbered lines of their own.
            if entry["sequence"] <= self._last:
                continue
            try:
                self._add(Entry.of(entry, spelled(entry)))
            except ValueError:
                continue  # written by another program: no time of ours, or no number of JSON's
            self._last = entry["sequence"]

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self.counts[entry.level] += 1
        self._bytes += entry.size
        while len(self._entries) > self._most or self._bytes > self._most_bytes:
            oldest = self._entries.popleft()
            self.counts[oldest.level] -= 1
            self._bytes -= oldest.size


class StoreHandler(logging.Handler):
    """Logging's way into the store."""

    def __init__(self, store: LogStore) -> None:
        super().__init__()
        self.store = store

    def emit(self, record: logging.LogRecord) -> None:
        try:
            entry = entry_of(record)
        except (TypeError, ValueError, KeyError, AttributeError):
            # A message that does not fit its arguments is told on the console, as logging does.
            self.handleError(record)
        else:
            self.store.keep(entry)

    def close(self) -> None:
        self.store.file.close()
        super().close()


_store: LogStore | None = None


def handler(config: Config) -> StoreHandler:
    """For settings.LOGGING: makes the store of this process."""
    global _store
    _store = LogStore(LogFile(config), config.log_buffer_max)
    return StoreHandler(_store)


def get_store() -> LogStore:
    """The store of this process."""
    if _store is None:
        raise RuntimeError("logging is not configured yet")
    return _store
