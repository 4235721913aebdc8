"""An entry as the buffer keeps it, and the question which entries are wanted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from apps.core.errors import InvalidInput

LEVELS = ("error", "warn", "info", "debug")
SOURCES = ("server", "client")
# What a page keeps, a stream replays, and `GET /logs` answers at most.
MOST = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the log. `moment` is in milliseconds; `line` the whole entry as JSON."""

    sequence: int
    level: str
    source: str
    moment: int
    line: str
    haystack: str

    @classmethod
    def of(cls, entry: Mapping[str, Any], line: str) -> "Entry":
        context = json.dumps(entry.get("context", {}), ensure_ascii=False)
        ids = (entry.get(name, "") for name in ("requestId", "correlationId"))
        moment = datetime.fromisoformat(entry["timestamp"]).timestamp()
        return cls(
            sequence=entry["sequence"],
            level=entry["level"],
            source=entry["source"],
            moment=round(moment * 1000),
            line=line,
            haystack="\n".join((entry["message"], context, *ids)).lower(),
        )

    @property
    def size(self) -> int:
        return len(self.line) + len(self.haystack)

    @property
    def data(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.line)
        return loaded


@dataclass(frozen=True)
class LogQuery:
    """Which entries; nothing given is no limit. `since` and `until` are in milliseconds."""

    levels: frozenset[str] = field(default_factory=frozenset)
    sources: frozenset[str] = field(default_factory=frozenset)
    text: str = ""
    since: int | None = None
    until: int | None = None
    after: int = 0
    limit: int = MOST

    @classmethod
    def read(cls, given: QueryDict) -> "LogQuery":
        """From a query string (docs/contract.md §9). Raises InvalidInput for numbers that are none.

        Levels and sources come comma separated or repeated; unknown ones are ignored.
        """
        return cls(
            levels=_known(given, "level", LEVELS),
            sources=_known(given, "source", SOURCES),
            text=given.get("text", "").strip().lower(),
            since=_number(given, "since"),
            until=_number(given, "until"),
            after=max(0, _number(given, "sinceSequence") or 0),
            limit=_clamped(_number(given, "limit")),
        )

    @property
    def address(self) -> str:
        """The filters as a query string; empty where there are none."""
        chosen = {
            "text": self.text,
            "level": ",".join(name for name in LEVELS if name in self.levels),
            "source": ",".join(name for name in SOURCES if name in self.sources),
            "since": self.since,
            "until": self.until,
        }
        return urlencode({name: value for name, value in chosen.items() if value}, safe=",")

    def matches(self, entry: Entry) -> bool:
        return (
            (not self.levels or entry.level in self.levels)
            and (not self.sources or entry.source in self.sources)
            and (self.since is None or entry.moment >= self.since)
            and (self.until is None or entry.moment <= self.until)
            and self.text in entry.haystack
        )


@dataclass(frozen=True)
class Selection:
    """What was found, oldest first, in a log whose newest entry was number `last`."""

    entries: list[Entry]
    last: int


def _known(given: QueryDict, name: str, known: tuple[str, ...]) -> frozenset[str]:
    asked = {word.strip().lower() for part in given.getlist(name) for word in part.split(",")}
    return frozenset(asked & set(known))


def _number(given: QueryDict, name: str) -> int | None:
    text = given.get(name, "").strip()
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{name} must be a whole number.", code="INVALID_QUERY") from None


def _clamped(limit: int | None) -> int:
    return MOST if limit is None else min(MOST, max(1, limit))
