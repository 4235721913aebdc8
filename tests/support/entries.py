"""Log entries as they are written: an entry takes its request id and facts at that moment."""

import logging
from typing import Any

from apps.logs.formatting import entry_of


class Entries(logging.Handler):
    """While it is attached, every record of `codeinfo` as its entry."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.all.append(entry_of(record))

    def of(self, request: str) -> list[dict[str, Any]]:
        """Those that belong to a request."""
        return [entry for entry in self.all if entry.get("requestId") == request]

    def __enter__(self) -> "Entries":
        logging.getLogger("codeinfo").addHandler(self)
        return self

    def __exit__(self, *raised: object) -> None:
        logging.getLogger("codeinfo").removeHandler(self)


def entry(message: str = "hello", **changes: Any) -> dict[str, Any]:
    moment = "2026-01-02T03:04:05.678Z"
    return {"level": "info", "message": message, "timestamp": moment, "source": "server"} | changes
