"""The log as an event stream, for programs in JSON and for the page in HTML.

A stream resumes after the number in Last-Event-ID, which browsers send by themselves when they
come back. A number that is not reached yet is one of another log: the reader begins anew.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace

from django.http import HttpRequest, StreamingHttpResponse

from apps.core.hub import Subscription, hub
from apps.logs.store import TOPIC, LogStore
from apps.logs.types import MOST, Entry, LogQuery

HEARTBEAT_SECONDS = 15.0
HEARTBEAT = ":\n\n"
# How long the page's stream gathers: entries come in bursts, and a browser draws 60 times a second.
GATHER_SECONDS = 0.25

pause = asyncio.sleep  # by this name, so that a test can have a clock of its own

# HTML of an event of that name; the entries come newest first.
Draw = Callable[[str, list[Entry]], str]
NOTHING = LogQuery(after=sys.maxsize)


def resume_point(request: HttpRequest, query: LogQuery) -> int | None:
    """The number after which to go on: of the header, else of the query; None: from the start."""
    header = request.headers.get("Last-Event-ID", "").strip()
    if header.isascii() and header.isdecimal() and len(header) < 19:
        return int(header)
    return query.after or None


def response(frames: AsyncIterator[str]) -> StreamingHttpResponse:
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(frames, content_type="text/event-stream", headers=headers)


async def json_frames(store: LogStore, query: LogQuery, after: int | None) -> AsyncIterator[str]:
    """One event an entry. A reader so slow that the buffer has gone on misses what has left it."""
    yield HEARTBEAT
    wanted = replace(query, after=_reached(store, after) or 0, limit=MOST)
    with hub.subscribe(TOPIC) as notices:
        while True:
            found = store.select(wanted)
            for entry in found.entries:
                yield f"id: {entry.sequence}\ndata: {entry.line}\n\n"
            # From here on nothing is left out, however much there is at once.
            wanted = replace(wanted, after=found.last, limit=sys.maxsize)
            if not await _changed(notices):
                yield HEARTBEAT


async def html_frames(
    store: LogStore, query: LogQuery, after: int | None, draw: Draw
) -> AsyncIterator[str]:
    """Events for the page: `all` replaces its list, `new` goes on top, `counts` tells how many
    entries there are of each level."""
    yield HEARTBEAT
    last = _reached(store, after)
    with hub.subscribe(TOPIC) as notices:
        while True:
            found = store.select(replace(query, after=last or 0, limit=MOST))
            name = "all" if last is None or len(found.entries) == MOST else "new"
            if name == "all" or found.entries:
                rows = await asyncio.to_thread(draw, name, found.entries[::-1])
                yield _event(name, found.last, rows)
            yield _event("counts", found.last, draw("counts", []))
            last = found.last
            while not await _changed(notices):
                yield HEARTBEAT
            await pause(GATHER_SECONDS)


def _reached(store: LogStore, after: int | None) -> int | None:
    """`after`, unless this log has not come so far."""
    if after is None:
        return None
    return after if after <= store.select(NOTHING).last else None


def _event(name: str, number: int, text: str) -> str:
    data = "\n".join(f"data: {line}" for line in text.splitlines())
    return f"event: {name}\nid: {number}\n{data}\n\n"


async def _changed(notices: Subscription) -> bool:
    """Whether there was an entry within the time of a heartbeat."""
    try:
        async with asyncio.timeout(HEARTBEAT_SECONDS), aclosing(notices.batches()) as changes:
            await anext(changes)
    except TimeoutError:
        return False
    return True
