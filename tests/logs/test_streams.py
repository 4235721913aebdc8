"""`/logs/stream` and the page's stream: replay, new entries and heartbeats."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar

import pytest
from django.http import QueryDict
from django.test import AsyncClient, RequestFactory

from apps.logs import panels, stream
from apps.logs import store as store_module
from apps.logs.store import LogStore
from apps.logs.types import LogQuery
from tests.logs.conftest import MakeStore
from tests.support.entries import entry

T = TypeVar("T")

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


@asynccontextmanager
async def read(frames: Any) -> AsyncIterator[Reader]:
    """A reader that has read the first heartbeat."""
    async with aclosing(frames):
        reader = Reader(frames)
        assert await reader.frame() == ":\n\n"
        yield reader


async def begun(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that waits already."""
    task = asyncio.create_task(work)
    await asyncio.sleep(0)
    return task


def reading(store: LogStore, query: str = "", after: int | None = None) -> Any:
    return read(stream.json_frames(store, LogQuery.read(QueryDict(query)), after))


async def test_a_stream_starts_with_a_heartbeat_and_the_last_200_entries(store: LogStore) -> None:
    fill(store, 230)
    async with reading(store) as reader:
        assert await reader.numbers(200) == list(range(31, 231))


async def test_each_new_entry_is_sent_as_json(store: LogStore) -> None:
    async with reading(store) as reader:
        waiting = await begun(reader.frame())
        store.add(entry("live", context={"a": "b\nc"}))
        number, data = (await waiting).removesuffix("\n\n").split("\n")
        assert number == "id: 1"
        assert json.loads(data.removeprefix("data: ")) == entry(
            "live", context={"a": "b\nc"}, sequence=1
        )


async def test_filters_apply_to_stored_and_new_entries(store: LogStore) -> None:
    fill(store, 3)
    store.add(entry("bad", level="error"))
    async with reading(store, "level=error") as reader:
        assert await reader.numbers(1) == [4]
        waiting = await begun(reader.numbers(1))
        fill(store, 2)
        store.add(entry("bad", level="error"))
        assert await waiting == [7]


async def test_no_entry_of_a_burst_is_skipped(store: LogStore) -> None:
    async with reading(store) as reader:
        waiting = await begun(reader.numbers(1))
        fill(store, 500)
        assert await waiting + await reader.numbers(499) == list(range(1, 501))


async def test_a_silent_stream_sends_heartbeats(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.01)
    async with reading(store) as reader:
        assert [await reader.frame() for _ in range(2)] == [":\n\n"] * 2


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
    async with reading(store, after=7) as reader:
        assert await reader.numbers(3) == [8, 9, 10]


@pytest.mark.fault("The log breaks off")
async def test_a_reader_of_an_earlier_log_starts_from_the_beginning(store: LogStore) -> None:
    fill(store, 2)
    async with reading(store, after=5_000) as reader:
        assert await reader.numbers(2) == [1, 2]


def skipping(frame: str) -> tuple[int, int]:
    """The number of skipped entries, and the id of the event that says so."""
    name, number, data = frame.removesuffix("\n\n").split("\n")
    assert name == "event: skipped"
    return json.loads(data.removeprefix("data: "))["skipped"], int(number.removeprefix("id: "))


@pytest.mark.fault("The log breaks off")
async def test_a_replay_that_skips_says_how_many(store: LogStore) -> None:
    fill(store, 230)
    async with reading(store, after=7) as reader:
        assert skipping(await reader.frame()) == (23, 30)
        assert await reader.numbers(200) == list(range(31, 231))


async def test_a_reader_that_resumes_after_the_skipped_ones_is_told_once(store: LogStore) -> None:
    fill(store, 230)
    async with reading(store, after=30) as reader:
        assert await reader.numbers(200) == list(range(31, 231))


async def test_entries_that_left_the_buffer_are_counted_too(make_store: MakeStore) -> None:
    store = make_store(max_entries=10)
    fill(store, 50)
    async with reading(store, after=15) as reader:
        assert skipping(await reader.frame()) == (25, 40)
        assert await reader.numbers(10) == list(range(41, 51))


async def test_with_filters_only_matches_and_lost_entries_are_counted(
    make_store: MakeStore,
) -> None:
    store = make_store(max_entries=500)
    fill(store, 300)
    fill(store, 250, level="error")
    fill(store, 240)
    async with reading(store, "level=error", after=280) as reader:
        # 10 have left the buffer (281 to 290), 50 errors are more than the replay takes.
        assert skipping(await reader.frame()) == (60, 350)
        assert await reader.numbers(200) == list(range(351, 551))


async def test_a_lone_gap_is_reported_once(make_store: MakeStore) -> None:
    store = make_store(max_entries=10)
    fill(store, 50)
    async with reading(store, "level=error", after=15) as reader:
        assert skipping(await reader.frame()) == (25, 50)
        waiting = await begun(reader.numbers(1))
        store.add(entry("bad", level="error"))
        assert await waiting == [51]


async def test_a_reader_that_is_too_slow_is_told_what_it_missed(make_store: MakeStore) -> None:
    store = make_store(max_entries=10)
    async with reading(store) as reader:
        waiting = await begun(reader.frame())
        fill(store, 1)
        await waiting
        fill(store, 30)
        assert skipping(await reader.frame()) == (20, 21)
        assert await reader.numbers(10) == list(range(22, 32))


async def test_a_new_reader_skips_nothing(make_store: MakeStore) -> None:
    store = make_store(max_entries=10)
    fill(store, 50)
    async with reading(store) as reader:
        assert await reader.numbers(10) == list(range(41, 51))


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
        return read(stream.html_frames(store, LogQuery(), after, panels.render_event))

    async def test_the_page_gets_the_whole_list_and_then_new_entries(self, store: LogStore) -> None:
        fill(store, 3)
        async with self.reading(store) as reader:
            whole = await reader.frame()
            assert whole.startswith('event: all\nid: 3\ndata: <div class="table-wrap"')
            assert whole.index("log-3") < whole.index("log-1")
            assert "log-count-info" in await reader.frame()
            waiting = await begun(reader.frame())
            store.add(entry("fresh"))
            new = await waiting
            assert new.startswith("event: new\nid: 4\n")
            assert "log-4" in new and "log-3" not in new

    async def test_a_page_is_not_sent_the_list_that_it_has(self, store: LogStore) -> None:
        fill(store, 3)
        for number, first in (("3", "event: counts\n"), ("2", "event: all\n")):
            query = LogQuery.of_page(QueryDict(f"sinceSequence={number}"))
            async with read(stream.html_frames(store, query, None, panels.render_event)) as reader:
                assert (await reader.frame()).startswith(first)

    async def test_a_reconnecting_page_gets_only_the_entries_it_missed(
        self, store: LogStore
    ) -> None:
        fill(store, 9)
        async with self.reading(store, after=7) as reader:
            new = await reader.frame()
            assert new.startswith("event: new\nid: 9\n")
            assert "log-8" in new and "log-7" not in new

    async def test_a_page_that_missed_too_much_or_reads_another_log_gets_the_list(
        self, store: LogStore
    ) -> None:
        fill(store, 250)
        for after in (10, 9_999):
            async with self.reading(store, after=after) as reader:
                whole = await reader.frame()
                assert whole.startswith("event: all\nid: 250\n")
                assert whole.count("data-entry") == 200

    @pytest.mark.parametrize(("after", "expected"), [(10, "40 lines"), (49, "1 line"), (50, "")])
    async def test_it_says_how_many_lines_it_skipped(
        self, store: LogStore, after: int, expected: str
    ) -> None:
        fill(store, 250)
        async with self.reading(store, after=after) as reader:
            whole = await reader.frame()
            gap = f">{expected} skipped</td></tr></tbody>" if expected else ""
            assert gap in whole and ("skipped" in whole) == bool(expected)
            assert whole.index("log-51") < whole.rindex("</tbody>")

    async def test_lines_that_left_the_log_are_a_gap_below_the_new_ones(
        self, make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = make_store(max_entries=10)
        monkeypatch.setattr(store_module, "process_store", store)
        fill(store, 50)
        async with self.reading(store, after=15) as reader:
            new = await reader.frame()
            assert new.startswith("event: new\nid: 50\n")
            assert new.index("log-41") < new.index("25 lines skipped")
