"""`/logs/stream` and the page's stream: replay, new entries and heartbeats."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from django.http import QueryDict
from django.test import AsyncClient, RequestFactory

from apps.logs import panels, stream
from apps.logs.store import LogStore
from apps.logs.types import LogQuery
from tests.logs.test_store import entry

PATIENCE = 30


def fill(store: LogStore, count: int, level: str = "info") -> None:
    for number in range(count):
        store.add(entry(f"entry {number}", level=level))


class Reader:
    """Reads the frames of a stream in order."""

    def __init__(self, frames: AsyncIterator[str]) -> None:
        self.frames = frames

    async def frame(self) -> str:
        async with asyncio.timeout(PATIENCE):
            return await anext(self.frames)

    async def numbers(self, count: int) -> list[int]:
        frames = [await self.frame() for _ in range(count)]
        return [int(frame.split("\n")[0].removeprefix("id: ")) for frame in frames]


def reading(store: LogStore, query: str = "", after: int | None = None) -> Any:
    log_query = LogQuery.read(QueryDict(query))
    return aclosing(stream.json_frames(store, log_query, after))  # type: ignore[type-var]


async def test_a_stream_starts_with_a_heartbeat_and_the_last_200_entries(store: LogStore) -> None:
    fill(store, 230)
    async with reading(store) as frames:
        reader = Reader(frames)
        assert await reader.frame() == ":\n\n"
        assert await reader.numbers(200) == list(range(31, 231))


async def test_each_new_entry_is_sent_as_json(store: LogStore) -> None:
    async with reading(store) as frames:
        reader = Reader(frames)
        await reader.frame()
        waiting = asyncio.ensure_future(reader.frame())
        await asyncio.sleep(0)
        store.add(entry("live", context={"a": "b\nc"}))
        number, data = (await waiting).removesuffix("\n\n").split("\n")
        assert number == "id: 1"
        assert json.loads(data.removeprefix("data: ")) == entry(
            "live", context={"a": "b\nc"}, sequence=1
        )


async def test_filters_apply_to_stored_and_new_entries(store: LogStore) -> None:
    fill(store, 3)
    store.add(entry("bad", level="error"))
    async with reading(store, "level=error") as frames:
        reader = Reader(frames)
        await reader.frame()
        assert await reader.numbers(1) == [4]
        waiting = asyncio.ensure_future(reader.numbers(1))
        await asyncio.sleep(0)
        fill(store, 2)
        store.add(entry("bad", level="error"))
        assert await waiting == [7]


async def test_no_entry_of_a_burst_is_skipped(store: LogStore) -> None:
    async with reading(store) as frames:
        reader = Reader(frames)
        await reader.frame()
        waiting = asyncio.ensure_future(reader.numbers(1))
        await asyncio.sleep(0)
        fill(store, 500)
        assert await waiting + await reader.numbers(499) == list(range(1, 501))


async def test_a_silent_stream_sends_heartbeats(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.01)
    async with reading(store) as frames:
        reader = Reader(frames)
        assert [await reader.frame() for _ in range(3)] == [":\n\n"] * 3


@pytest.mark.parametrize(
    ("header", "query", "expected"),
    [
        ("7", "", 7),
        ("7", "sinceSequence=3", 7),
        ("", "sinceSequence=3", 3),
        ("x", "sinceSequence=3", 3),
        ("²", "", None),
        ("-1", "", None),
        ("9" * 40, "", None),
        ("", "", None),
    ],
)
def test_the_header_precedes_the_query(header: str, query: str, expected: int | None) -> None:
    request = RequestFactory().get("/logs/stream", headers={"last-event-id": header})
    log_query = LogQuery.read(QueryDict(query))
    assert stream.resume_point(request, log_query) == expected


async def test_a_reconnecting_reader_gets_the_entries_it_missed(store: LogStore) -> None:
    fill(store, 10)
    async with reading(store, after=7) as frames:
        reader = Reader(frames)
        await reader.frame()
        assert await reader.numbers(3) == [8, 9, 10]


async def test_a_reader_of_an_earlier_log_starts_from_the_beginning(store: LogStore) -> None:
    fill(store, 2)
    async with reading(store, after=5_000) as frames:
        reader = Reader(frames)
        await reader.frame()
        assert await reader.numbers(2) == [1, 2]


async def test_over_http_it_is_an_event_stream(store: LogStore, async_client: AsyncClient) -> None:
    fill(store, 2)
    answer: Any = await async_client.get("/logs/stream", headers={"last-event-id": "1"})
    assert answer["content-type"] == "text/event-stream"
    async with asyncio.timeout(PATIENCE):
        frames = aiter(answer)
        assert [await anext(frames), (await anext(frames))[:5]] == [b":\n\n", b"id: 2"]
    answer.close()


class TestThePage:
    @pytest.fixture(autouse=True)
    def unhurried(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stream, "pause", lambda seconds: asyncio.sleep(0))

    def reading(self, store: LogStore, after: int | None = None) -> Any:
        return aclosing(stream.html_frames(store, LogQuery(), after, panels.render_event))  # type: ignore[type-var]

    async def test_the_page_gets_the_whole_list_and_then_new_entries(self, store: LogStore) -> None:
        fill(store, 3)
        async with self.reading(store) as frames:
            reader = Reader(frames)
            assert await reader.frame() == ":\n\n"
            whole = await reader.frame()
            assert whole.startswith('event: all\nid: 3\ndata: <div class="table-wrap"')
            assert whole.index("log-3") < whole.index("log-1")
            assert "log-count-info" in await reader.frame()
            waiting = asyncio.ensure_future(reader.frame())
            await asyncio.sleep(0)
            store.add(entry("fresh"))
            new = await waiting
            assert new.startswith("event: new\nid: 4\n")
            assert "log-4" in new and "log-3" not in new

    async def test_a_reconnecting_page_gets_only_the_entries_it_missed(
        self, store: LogStore
    ) -> None:
        fill(store, 9)
        async with self.reading(store, after=7) as frames:
            reader = Reader(frames)
            await reader.frame()
            new = await reader.frame()
            assert new.startswith("event: new\nid: 9\n")
            assert "log-8" in new and "log-7" not in new

    async def test_a_page_that_missed_too_much_or_reads_another_log_gets_the_list(
        self, store: LogStore
    ) -> None:
        fill(store, 250)
        for after in (10, 9_999):
            async with self.reading(store, after=after) as frames:
                reader = Reader(frames)
                await reader.frame()
                whole = await reader.frame()
                assert whole.startswith("event: all\nid: 250\n")
                assert whole.count("<tbody") == 200
