"""The log as server-sent events (WHATWG HTML): JSON for programs, HTML for the page.

A stream resumes after the number in Last-Event-ID, which browsers send when they reconnect. A
number above the current one belongs to a removed log, so the stream starts from the beginning.
A stream that resumes and skips entries says how many.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from django.http import HttpRequest, StreamingHttpResponse

from apps.core.concurrency.hub import hub
from apps.logs.store import TOPIC, LogStore
from apps.logs.types import MAX_ENTRIES, LogEntry, LogQuery, Selection

HEARTBEAT_SECONDS = 15.0
HEARTBEAT = ":\n\n"
# The page's stream collects entries for this time, because entries come in bursts.
BATCH_SECONDS = 0.25

pause = asyncio.sleep  # tests replace this name

# (event name, entries newest first, number of skipped entries) → HTML
RenderEvent = Callable[[str, list[LogEntry], int], str]
MATCH_NOTHING = LogQuery(after=sys.maxsize)


def resume_point(request: HttpRequest, query: LogQuery) -> int | None:
    """Return the number to resume after: the header's, else the query's; None: the beginning."""
    header = request.headers.get("Last-Event-ID", "").strip()
    if header.isascii() and header.isdecimal() and len(header) < 19:
        return int(header)
    return query.after or None


def response(frames: AsyncIterator[str]) -> StreamingHttpResponse:
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(frames, content_type="text/event-stream", headers=headers)


async def json_frames(store: LogStore, query: LogQuery, after: int | None) -> AsyncIterator[str]:
    """Yield one event for each entry, and `skipped` with a number in place of entries that are not
    sent: those before the replay, and those that have left the buffer before a slow reader came to
    them. A new reader misses none."""
    yield HEARTBEAT
    remaining = replace(query, after=_valid_position(store, after) or 0, limit=MAX_ENTRIES)
    is_resumed = after is not None
    with hub.subscribe(TOPIC) as notices:
        while True:
            selection = store.select(remaining, counts_skipped=is_resumed)
            is_resumed = True
            if selection.skipped:
                yield _skipped(selection)
            for entry in selection.entries:
                yield f"id: {entry.sequence}\ndata: {entry.line}\n\n"
            # From here on no entry is skipped, however many come at once.
            remaining = replace(remaining, after=selection.last, limit=sys.maxsize)
            if not await notices.next_within(HEARTBEAT_SECONDS):
                yield HEARTBEAT


async def html_frames(
    store: LogStore, query: LogQuery, after: int | None, render_event: RenderEvent
) -> AsyncIterator[str]:
    """Yield events for the page: `all` replaces the list, `new` adds rows on top, `counts` has the
    number of entries of each level. Rows end in a line about skipped entries.

    `query.after` is the log's newest number when the page was rendered: until there is a newer one,
    the page has the list."""
    yield HEARTBEAT
    last = _valid_position(store, after)
    is_resumed = after is not None
    with hub.subscribe(TOPIC) as notices:
        while True:
            newest = replace(query, after=last or 0)
            selection = store.select(newest, counts_skipped=is_resumed)
            skipped = selection.skipped
            name = "all" if last is None or len(selection.entries) == query.limit else "new"
            is_rendered = last is None and 0 < query.after == selection.last
            if not is_rendered and (name == "all" or selection.entries or skipped):
                rows = await asyncio.to_thread(render_event, name, selection.entries[::-1], skipped)
                yield _event(name, selection.last, rows)
            yield _event("counts", selection.last, render_event("counts", [], 0))
            last, is_resumed = selection.last, True
            while not await notices.next_within(HEARTBEAT_SECONDS):
                yield HEARTBEAT
            await pause(BATCH_SECONDS)


def _valid_position(store: LogStore, after: int | None) -> int | None:
    """Return `after`, or None if it is above this log's last number."""
    if after is None:
        return None
    return after if after <= store.select(MATCH_NOTHING).last else None


def _skipped(selection: Selection) -> str:
    """The event for skipped entries. Its id is the number of the last of them."""
    first = selection.entries[0].sequence if selection.entries else selection.last + 1
    return _event("skipped", first - 1, json.dumps({"skipped": selection.skipped}))


def _event(name: str, number: int, text: str) -> str:
    data = "\n".join(f"data: {line}" for line in text.splitlines())
    return f"event: {name}\nid: {number}\n{data}\n\n"
