"""A buffered log entry, and a query for entries."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from apps.core.errors import InvalidInput

LEVELS = ("error", "warn", "info", "debug")
SOURCES = ("server", "client")
# The maximum in a replay of a stream, and in a response of `GET /logs`.
MAX_ENTRIES = 200
PAGE_ENTRIES = 50


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line of the log.

    moment: Unix time, milliseconds.
    line: the whole entry as JSON.
    search_text: message, context and ids in lower case.
    """

    sequence: int
    level: str
    source: str
    moment: int
    line: str
    search_text: str

    @classmethod
    def of(cls, entry: Mapping[str, Any], line: str) -> "LogEntry":
        context = json.dumps(entry.get("context", {}), ensure_ascii=False)
        ids = (entry.get(name, "") for name in ("requestId", "correlationId"))
        moment = datetime.fromisoformat(entry["timestamp"]).timestamp()
        return cls(
            sequence=entry["sequence"],
            level=entry["level"],
            source=entry["source"],
            moment=round(moment * 1000),
            line=line,
            search_text="\n".join((entry["message"], context, *ids)).lower(),
        )

    @property
    def size(self) -> int:
        """Approximate memory, in characters."""
        return len(self.line) + len(self.search_text)

    @property
    def data(self) -> dict[str, Any]:
        """The entry in the shape of contract.md §9."""
        loaded: dict[str, Any] = json.loads(self.line)
        return loaded


@dataclass(frozen=True)
class LogQuery:
    """Filters for entries; an empty filter matches everything.

    since, until: Unix time, milliseconds, inclusive.
    after: only entries with a higher number.
    before: only entries with a lower number.
    """

    levels: frozenset[str] = field(default_factory=frozenset)
    sources: frozenset[str] = field(default_factory=frozenset)
    text: str = ""
    since: int | None = None
    until: int | None = None
    after: int = 0
    before: int | None = None
    limit: int = MAX_ENTRIES

    @classmethod
    def read(cls, params: QueryDict) -> "LogQuery":
        """Parse a query string (contract.md §9). Raises InvalidInput for an invalid number.

        Levels and sources are comma separated or repeated; unknown ones are ignored.
        """
        limit = _number(params, "limit")
        return cls(
            levels=_chosen(params, "level", LEVELS),
            sources=_chosen(params, "source", SOURCES),
            text=params.get("text", "").strip().lower(),
            since=_number(params, "since"),
            until=_number(params, "until"),
            after=max(0, _number(params, "sinceSequence") or 0),
            limit=MAX_ENTRIES if limit is None else min(MAX_ENTRIES, max(1, limit)),
        )

    @classmethod
    def of_page(cls, params: QueryDict) -> "LogQuery":
        """Parse the query string of the page, which shows fewer and goes back by `before`."""
        query = cls.read(params)
        return replace(query, before=_number(params, "before"), limit=PAGE_ENTRIES)

    @property
    def address(self) -> str:
        """The filters as a query string; "" without filters."""
        chosen = {
            "text": self.text,
            "level": ",".join(name for name in LEVELS if name in self.levels),
            "source": ",".join(name for name in SOURCES if name in self.sources),
            "since": self.since,
            "until": self.until,
        }
        return urlencode({name: value for name, value in chosen.items() if value}, safe=",")

    def matches(self, entry: LogEntry) -> bool:
        """Return True if the entry passes all filters, `after` and `limit` aside."""
        return (
            (not self.levels or entry.level in self.levels)
            and (not self.sources or entry.source in self.sources)
            and (self.since is None or entry.moment >= self.since)
            and (self.until is None or entry.moment <= self.until)
            and (self.before is None or entry.sequence < self.before)
            and self.text in entry.search_text
        )


@dataclass(frozen=True)
class Selection:
    """The matching entries, oldest first, and the number of the log's newest entry.

    skipped: entries after `LogQuery.after` that are not in `entries`: older ones that match, and
        all that have left the buffer. Counted on request only.
    """

    entries: list[LogEntry]
    last: int
    skipped: int = 0


def _chosen(params: QueryDict, name: str, allowed: tuple[str, ...]) -> frozenset[str]:
    values = {word.strip().lower() for part in params.getlist(name) for word in part.split(",")}
    return frozenset(values & set(allowed))


def _number(params: QueryDict, name: str) -> int | None:
    text = params.get(name, "").strip()
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{name} must be a whole number.", code="INVALID_QUERY") from None
