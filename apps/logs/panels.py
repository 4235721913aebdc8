"""Data for the partials of the Logs page, which the page, htmx responses and the stream share."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest
from django.template.loader import render_to_string

from apps.logs.chart import lines_chart
from apps.logs.store import get_store
from apps.logs.types import LEVELS, PAGE_ENTRIES, SOURCES, LogEntry, LogQuery

MAX_PREVIEW = 240
MAX_JSON = 8_000
MAX_CHARTED = 20_000  # lines


@dataclass(frozen=True)
class EntryRow:
    """An entry as the page shows it.

    preview: the context on one line, at most MAX_PREVIEW characters.
    json: the whole entry, indented, at most MAX_JSON characters.
    moment: UTC.
    """

    sequence: int
    level: str
    source: str
    message: str
    moment: datetime
    preview: str
    json: str
    traceback: str
    request: str

    @classmethod
    def of(cls, entry: LogEntry) -> "EntryRow":
        data = entry.data
        context = dict(data.get("context", {}))
        traceback = str(context.pop("traceback", ""))
        text = json.dumps({**data, "context": context}, indent=2, ensure_ascii=False)
        return cls(
            sequence=entry.sequence,
            level=entry.level,
            source=entry.source,
            message=data["message"],
            moment=datetime.fromtimestamp(entry.moment / 1000, UTC),
            # Ids are long and rarely useful, so they come last.
            preview=" · ".join(sorted(_facts(context), key=_is_id))[:MAX_PREVIEW],
            json=text if len(text) <= MAX_JSON else f"{text[:MAX_JSON]}\n…",
            traceback=traceback,
            request=str(data.get("requestId", "")),
        )

    @property
    def clock(self) -> str:
        """The time of day to the millisecond, in UTC; the browser converts it to local time."""
        return f"{self.moment:%H:%M:%S}.{self.moment.microsecond // 1000:03}"


@dataclass(frozen=True)
class FilterOption:
    """One value of a filter. `count` is the number of stored entries with it."""

    name: str
    on: bool
    count: int = 0


def context(request: HttpRequest) -> dict[str, Any]:
    """Return the template context of the page and its partials. No chosen level means all."""
    query = LogQuery.of_page(request.GET)
    store = get_store()
    live = query.before is None and request.GET.getlist("live")[-1:] != ["off"]
    address = _joined(query.address, "" if live else "live=off")
    # One more tells whether there is another page.
    selection = store.select(replace(query, limit=PAGE_ENTRIES + 1))
    entries = selection.entries[-PAGE_ENTRIES:]
    oldest = entries[0].sequence if entries else 0
    return {
        "text": request.GET.get("text", "").strip(),
        "levels": [
            FilterOption(name, not query.levels or name in query.levels, store.counts[name])
            for name in LEVELS
        ],
        "sources": [
            FilterOption(name, not query.sources or name in query.sources) for name in SOURCES
        ],
        "live": live,
        "filtered": bool(query.address),
        "stream_query": _joined(query.address, f"sinceSequence={selection.last}"),
        "page_address": f"/logs?{address}" if address else "/logs",
        "rows": [EntryRow.of(entry) for entry in entries[::-1]],
        "most": PAGE_ENTRIES,
        "newest_address": "" if query.before is None else f"/logs?{query.address}",
        "older_address": "/logs?" + _joined(query.address, f"before={oldest}"),
        "has_older": len(selection.entries) > PAGE_ENTRIES,
        **over_time(query),
    }


def over_time(query: LogQuery) -> dict[str, Any]:
    """The context of the chart."""
    entries = get_store().select(replace(query, limit=MAX_CHARTED)).entries
    return {"chart": lines_chart(entries), "filters": query.address}


def _joined(*parts: str) -> str:
    return "&".join(filter(None, parts))


def render_event(
    name: str, entries: list[LogEntry], skipped: int, *, filtered: bool = False
) -> str:
    """Render the HTML of a stream event: "all", "new" or "counts".

    skipped: number of older entries that neither the page nor this event has.
    """
    if name == "counts":
        levels = [FilterOption(level, True, get_store().counts[level]) for level in LEVELS]
        return render_to_string("logs/_counts.html", {"levels": levels})
    template = "logs/_table.html" if name == "all" else "logs/_rows.html"
    rows = [EntryRow.of(entry) for entry in entries]
    return render_to_string(template, {"rows": rows, "skipped": skipped, "filtered": filtered})


def _is_id(fact: str) -> bool:
    return fact.partition(" ")[0].endswith("Id")


def _facts(context: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in context.items():
        if isinstance(value, dict) and not prefix:
            yield from _facts(value, f"{name}.")
        elif isinstance(value, list | dict):
            yield f"{prefix}{name} ({len(value)})"
        elif value not in (None, ""):
            yield f"{prefix}{name} {value}"
