"""A process that searches mapped roots: `python -m apps.retrieval.search_process FD`.

Protocol, over the socket FD, pickled: the parent sends the settings; then any number of
(function, arguments). Each is answered by a Reply as a plain tuple.

The process reads the files of the data folder and writes none. It leaves to its parent what it
cannot answer from them: roots that are not mapped, and every error. It ends when the parent's end
of the socket is closed, and ignores SIGINT and SIGTERM, as the parent ends it.
"""

import logging
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from importlib import import_module
from typing import Any, NamedTuple

import django
from django.conf import settings

from apps.core.errors import CodeinfoError
from apps.core.system.heap import settled
from apps.core.system.pipe import Pipe

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


def main() -> None:
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.SIG_IGN)
    # The parent may end at any time.
    with suppress(EOFError, ConnectionError), closing(Pipe(_socket())) as parent:
        records = set_up(parent.receive())
        parent.send(tuple(Reply(True, None, records.take())))
        while True:
            function, arguments = parent.receive()
            parent.send(tuple(answer(function, arguments, records)))


def _socket() -> socket.socket:
    return socket.socket(fileno=int(sys.argv[1]))


def set_up(values: Mapping[str, Any]) -> Records:
    """Set up Django with the settings of the parent."""
    values = dict(values)
    records = Records()
    logging.getLogger().addHandler(records)
    logging.getLogger("codeinfo").setLevel(values.pop("LOG_LEVEL"))
    settings.configure(**values, LOGGING_CONFIG=None)
    django.setup(set_prefix=False)
    import_module(SEARCH)
    settled()
    return records


def answer(function: Callable[..., Any], arguments: tuple[Any, ...], records: Records) -> Reply:
    try:
        return Reply(True, function(*arguments), records.take())
    except CodeinfoError:
        # The parent meets the error itself, or succeeds.
        records.take()
        return Reply(False, None, [])


if __name__ == "__main__":
    main()
