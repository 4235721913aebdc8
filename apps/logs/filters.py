"""Filters of the loggers of libraries."""

import logging


class BugFilter(logging.Filter):
    """Keeps the records of `django.request` that are errors of codeinfo.

    A 502 or 503 without an exception is an answer: another server is away. The entry of its request
    has the status.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return record.exc_info is not None or getattr(record, "status_code", 500) == 500
