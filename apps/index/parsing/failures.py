"""Parses that fail or are slow, and what they may cost a run before it stops parsing a language.

Otherwise a folder of hostile files would hold the ingest worker for hours.
"""

import logging
import threading
from collections import defaultdict
from enum import Enum
from math import inf

log = logging.getLogger("codeinfo.ingest")

# Processor time of one file's parse.
PARSE_SECONDS = 5.0
# Processor time that the failed and slow parses of a run may cost.
RUN_SECONDS = 60.0
# A failed parse costs at least this part of it, so that so many failures are enough.
MAX_FAILURES = 20
# A language is no longer parsed if this part of the time was spent on it.
SHARE = 0.25
# A file may take the part of the limit that it has of the largest file, and a little more, without
# being slow. No grammar needs half of it for ordinary files.
LARGEST_BYTES = 1_000_000
FREE_SECONDS = 0.01


class ParseFailure(Enum):
    """Why there is no result for a file."""

    KILLED = "killed"  # it killed two processes
    TOO_LONG = "too long"  # the parse timed out
    # It was not parsed, as too many files of its language had failed in one of these ways.
    AFTER_KILLED = "after killed"
    AFTER_TOO_LONG = "after too long"


class SlowParses:
    """The processor time that the failed and slow parses of a run have cost. Thread-safe."""

    def __init__(self, parse_seconds: float = inf, run_seconds: float = inf) -> None:
        """
        parse_seconds: the limit of one parse
        run_seconds: the limit of all of them; `inf`: every file is parsed
        """
        self._free_per_byte = parse_seconds / LARGEST_BYTES
        self._limit = run_seconds
        self._spent: dict[str, float] = defaultdict(float)  # grammar → seconds
        self._ended: dict[str, ParseFailure] = {}  # grammar → the failure of its other files
        self._lock = threading.Lock()

    def failure(self, grammar: str) -> ParseFailure | None:
        """Return why no more files of a grammar are parsed; None if they are."""
        return self._ended.get(grammar)

    def parsed(self, grammar: str, size: int, seconds: float) -> None:
        """Count a parse of `size` bytes that took `seconds` of processor time."""
        free = FREE_SECONDS + self._free_per_byte * size
        if seconds > free:
            self._spend(grammar, seconds - free, ParseFailure.AFTER_TOO_LONG)

    def failed(self, grammar: str, seconds: float, failure: ParseFailure) -> None:
        """Count a parse that failed."""
        if failure is ParseFailure.TOO_LONG:
            cost = max(seconds, self._limit / MAX_FAILURES)
            self._spend(grammar, cost, ParseFailure.AFTER_TOO_LONG)
        else:
            self._spend(grammar, self._limit / MAX_FAILURES, ParseFailure.AFTER_KILLED)

    def _spend(self, grammar: str, seconds: float, failure: ParseFailure) -> None:
        if self._limit == inf:
            return
        with self._lock:
            self._spent[grammar] += seconds
            is_over = sum(self._spent.values()) >= self._limit
            if is_over and self._spent[grammar] >= SHARE * self._limit:
                if grammar not in self._ended:
                    facts = {"grammar": grammar, "reason": failure.value}
                    log.warning("language no longer parsed", extra={"context": facts})
                self._ended.setdefault(grammar, failure)
