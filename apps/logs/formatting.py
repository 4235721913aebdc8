"""Log entries as JSON lines, in the shape of contracts.md §9.

One line is one entry: JSON escapes control, ANSI and bidirectional characters, so no message can
forge a second line or hide part of one. Values under telling names are redacted at any depth.
"""

import json
import logging
import re
from datetime import UTC, datetime
from logging.handlers import TimedRotatingFileHandler
from typing import Any

from apps.logs.context import request_id
from codeinfo.conf import Knobs
from codeinfo.times import wire_time

LEVELS = {"WARNING": "warn", "CRITICAL": "error"}
SECRET_NAMES = re.compile(r"authorization|password|passwd|token|secret|api[_-]?key|cookie", re.I)
REDACTED = "[redacted]"


def redact(value: Any) -> Any:
    """A copy with the values of secret-looking keys replaced, however deep they are."""
    if isinstance(value, dict):
        return {
            key: REDACTED if SECRET_NAMES.search(str(key)) else redact(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact(inner) for inner in value]
    return value


def entry_of(record: logging.LogRecord) -> dict[str, Any]:
    """A log record as a LogEntry. Structured facts come in `extra={"context": {...}}`."""
    moment = datetime.fromtimestamp(record.created, UTC)
    entry: dict[str, Any] = {
        "level": LEVELS.get(record.levelname, record.levelname.lower()),
        "message": record.getMessage(),
        "timestamp": wire_time(moment),
        "source": "server",
        "tags": [record.name],
    }
    if request_id.get():
        entry["requestId"] = request_id.get()
    context = dict(redact(getattr(record, "context", {})))
    if record.exc_info:
        context["traceback"] = logging.Formatter().formatException(record.exc_info)
    if context:
        entry["context"] = context
    return entry


class JsonFormatter(logging.Formatter):
    """One JSON object per line, ASCII only."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(entry_of(record), default=str)


def file_handler(knobs: Knobs) -> logging.Handler:
    """The log file, opened at the first entry; a new one each day unless LOG_FILE_ROTATE=false."""
    knobs.log_file_path.parent.mkdir(parents=True, exist_ok=True)
    if knobs.log_file_rotate:
        return TimedRotatingFileHandler(
            knobs.log_file_path, when="midnight", backupCount=14, encoding="utf-8", delay=True
        )
    return logging.FileHandler(knobs.log_file_path, encoding="utf-8", delay=True)
