"""What a process that searches mapped roots calls (`core.concurrency.background`).

It reads the files of the data folder and writes none. It leaves to its parent what it cannot answer
from them: roots that are not mapped, and every error. It ignores SIGINT and SIGTERM, as the parent
ends it.
"""

import logging
import signal
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import django
from django.conf import settings

from apps.core.errors import CodeinfoError
from apps.core.system.heap import settled

# Imported before the first search, with all that it needs.
SEARCH = "apps.retrieval.search"


class Reply(NamedTuple):
    """The answer to a request."""

    answered: bool  # False: the parent has to call the function itself
    value: Any
    records: list[dict[str, Any]]  # of the log, for `logging.makeLogRecord`


class Records(logging.Handler):
    """Collects log records of one request."""

    def __init__(self) -> None:
        super().__init__()
        self._records: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        # As `logging.handlers.QueueHandler`: arguments and tracebacks may not be picklable.
        message = record.getMessage()
        fields = {"msg": message, "args": None, "exc_info": None, "exc_text": None}
        self._records.append({**vars(record), **fields})

    def take(self) -> list[dict[str, Any]]:
        records, self._records = self._records, []
        return records


_records = Records()


def set_up(values: Mapping[str, Any]) -> None:
    """Set up Django with the settings of the parent."""
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.SIG_IGN)
    values = dict(values)
    logging.getLogger().addHandler(_records)
    logging.getLogger("codeinfo").setLevel(values.pop("LOG_LEVEL"))
    settings.configure(**values, LOGGING_CONFIG=None)
    django.setup(set_prefix=False)
    import_module(SEARCH)
    settled()


def answer(function: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
    """Call a function. Return a Reply as a plain tuple, which takes less time to pickle."""
    try:
        return tuple(Reply(True, function(*arguments), _records.take()))
    except CodeinfoError:
        # The parent meets the error itself, or succeeds.
        _records.take()
        return tuple(Reply(False, None, []))
