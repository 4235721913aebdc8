"""Pages of rows, newest first, and their cursors (contract.md §1.2).

A cursor is the time of the last row in ISO-8601 UTC (`2026-01-31T09:00:00.123Z`). If the next row
has the same time, the key of the last row follows (`…Z~<key>`), so that no row is skipped. Both
forms are accepted.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet

from apps.core.errors import InvalidInput

ModelT = TypeVar("ModelT", bound=Model)

ISO_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")
SEPARATOR = "~"


@dataclass(frozen=True)
class Cursor:
    """A position in the order by time and key, both descending.

    at: time of the last row.
    key: its primary key; "" if no other row has that time.
    """

    at: datetime
    key: str = ""

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Parse a cursor. Raises InvalidInput."""
        moment, _, key = text.partition(SEPARATOR)
        if not ISO_UTC.fullmatch(moment):
            raise InvalidInput("cursor must be an ISO-8601 UTC time")
        try:
            return cls(datetime.fromisoformat(moment), key)
        except ValueError as error:
            raise InvalidInput("cursor must be an ISO-8601 UTC time") from error

    def __str__(self) -> str:
        # Full precision, or the cursor skips rows within a millisecond.
        exact = "microseconds" if self.at.microsecond % 1000 else "milliseconds"
        moment = self.at.astimezone(UTC).isoformat(timespec=exact).replace("+00:00", "Z")
        return f"{moment}{SEPARATOR}{self.key}" if self.key else moment


@dataclass(frozen=True)
class Page(Generic[ModelT]):
    """One page of rows. `next_cursor` is set on every full page, also on the last one."""

    items: Sequence[ModelT]
    next_cursor: str | None


def newest_first(
    rows: QuerySet[ModelT], time_field: str, limit: int, cursor: Cursor | None
) -> Page[ModelT]:
    """One page ordered by time, then key, both descending. Raises InvalidInput on a bad key."""
    try:
        if cursor is not None:
            rows = rows.filter(_after(time_field, cursor))
        fetched = list(rows.order_by(f"-{time_field}", "-pk")[: limit + 1])
    except (ValidationError, ValueError) as error:
        problem = {"cursor": ["is not one of ours"]}
        raise InvalidInput(
            "Validation failed.", code="validation_error", details={"details": problem}
        ) from error
    return page_of(fetched, time_field, limit)


def page_of(fetched: Sequence[ModelT], time_field: str, limit: int) -> Page[ModelT]:
    """The page that begins with the first of `fetched`, which are in order."""
    items, rest = fetched[:limit], fetched[limit:]
    next_cursor = None
    if len(items) == limit:
        at = getattr(items[-1], time_field)
        tied = any(getattr(row, time_field) == at for row in rest)
        next_cursor = str(Cursor(at, str(items[-1].pk) if tied else ""))
    return Page(items, next_cursor)


def _after(time_field: str, cursor: Cursor) -> Q:
    earlier = Q(**{f"{time_field}__lt": cursor.at})
    if not cursor.key:
        return earlier
    return earlier | Q(**{time_field: cursor.at, "pk__lt": cursor.key})
