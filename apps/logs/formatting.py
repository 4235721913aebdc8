"""Convert log records to entries (contract.md §9), and entries to lines."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

from apps.core.values.times import wire_time
from apps.logs.context import request_id, run_facts
from apps.logs.redaction import clean, clean_text

LEVELS = {"WARNING": "warn", "CRITICAL": "error"}


def entry_of(record: logging.LogRecord) -> dict[str, Any]:
    """Convert a record to a cleaned entry. `extra={"context": {...}}` adds structured facts."""
    moment = datetime.fromtimestamp(record.created, UTC)
    entry: dict[str, Any] = {
        "level": LEVELS.get(record.levelname, record.levelname.lower()),
        "message": clean_text(record.getMessage()),
        "timestamp": wire_time(moment),
        "source": "server",
        "tags": [record.name],
    }
    if request_id.get():
        entry["requestId"] = request_id.get()
    context = clean({**run_facts.get(), **getattr(record, "context", {})})
    if record.exc_info:
        traceback = logging.Formatter().formatException(record.exc_info)
        context["traceback"] = clean_text(traceback, lines=True)
    if context:
        entry["context"] = context
    return entry


def to_json_line(entry: dict[str, Any]) -> str:
    """Serialise an entry to one line of ASCII JSON, so that no text can start a second line."""
    return json.dumps(entry, allow_nan=False)


class ConsoleFormatter(logging.Formatter):
    """Formats records for the console: level, message and facts, cleaned like stored entries."""

    def format(self, record: logging.LogRecord) -> str:
        entry = entry_of(record)
        context = entry.get("context", {})
        traceback = context.pop("traceback", "")
        facts = f" {to_json_line(context)}" if context else ""
        text = f"{entry['level'].upper()} {entry['message']}{facts}"
        return f"{text}\n{traceback}" if traceback else text
