"""The buffer and its file: increasing numbers, limits and restarts."""

import json
import logging
import threading
from pathlib import Path

import pytest
from django.http import QueryDict

from apps.core.errors import InvalidInput
from apps.logs.store import LogStore, StoreHandler
from apps.logs.types import LogQuery
from tests.logs.conftest import MakeStore
from tests.support.entries import entry


def messages(store: LogStore, query: str = "") -> list[str]:
    return [
        found.data["message"] for found in store.select(LogQuery.read(QueryDict(query))).entries
    ]


def test_numbers_start_at_one_and_increase_by_one(make_store: MakeStore) -> None:
    store = make_store()
    assert [store.add(entry()) for _ in range(3)] == [1, 2, 3]


def test_the_oldest_entries_leave_the_buffer(make_store: MakeStore) -> None:
    store = make_store(max_entries=3)
    for number in range(10):
        store.add(entry(str(number)))
    assert messages(store) == ["7", "8", "9"]
    assert store.counts["info"] == 3


@pytest.mark.fault("The log breaks off")
def test_the_buffer_is_also_limited_in_bytes(make_store: MakeStore) -> None:
    store = make_store(max_bytes=10_000)
    for number in range(50):
        store.add(entry(str(number), context={"much": "x" * 1_000}))
    assert 1 < len(messages(store)) < 6
    assert messages(store)[-1] == "49"


@pytest.mark.fault("The log breaks off")
def test_numbers_and_entries_continue_after_a_restart(
    make_store: MakeStore,
) -> None:
    first = make_store()
    for number in range(5):
        first.add(entry(str(number), context={"runId": "r-1"}), client=number == 4)
    second = make_store(max_entries=3)
    assert second.add(entry("after")) == 6
    assert messages(second) == ["3", "4", "after"]
    assert second.select(LogQuery(text="r-1")).entries[-1].data == entry(
        "4", context={"runId": "r-1"}, sequence=5
    )


def test_numbers_and_entries_continue_after_a_rotation(
    make_store: MakeStore, tmp_path: Path
) -> None:
    make_store().add(entry("yesterday"))
    log = tmp_path / "logs" / "server.log"
    log.rename(log.with_name("server.log.2026-01-01"))
    store = make_store()
    assert store.add(entry("today")) == 2
    assert messages(store) == ["yesterday", "today"]


@pytest.mark.fault("The log breaks off")
def test_truncated_and_foreign_lines_are_skipped(make_store: MakeStore, tmp_path: Path) -> None:
    make_store().add(entry("whole"))
    with (tmp_path / "logs" / "server.log").open("a") as file:
        file.write('not json\n[]\n{"sequence": 7}\n{"sequence": "8"}\n')
        file.write(json.dumps(entry("no time", timestamp="noon", sequence=9)) + "\n")
        file.write(json.dumps(entry("again", sequence=1)) + "\n")
        file.write(json.dumps(entry("torn", sequence=10))[:-20])
    store = make_store()
    assert messages(store) == ["whole"]
    assert store.add(entry("next")) == 2
    assert messages(make_store()) == ["whole", "next"]


def test_the_file_marks_the_entries_of_clients(make_store: MakeStore, tmp_path: Path) -> None:
    store = make_store()
    store.add(entry("ours"))
    store.add(entry("theirs"), client=True)
    lines = (tmp_path / "logs" / "server.log").read_text().splitlines()
    assert [json.loads(each).get("marker") for each in lines] == [None, "CLIENT_LOG"]


@pytest.mark.fault("The log breaks off")
def test_a_file_that_cannot_be_written_fails_no_request(
    make_store: MakeStore, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    store = make_store(path=tmp_path / "file" / "server.log")
    assert store.add(entry()) == 1
    assert messages(store) == ["hello"]
    assert store.file.problem is not None


def test_each_entry_of_many_threads_gets_a_unique_number(
    make_store: MakeStore, tmp_path: Path
) -> None:
    store = make_store()
    numbers: list[int] = []

    def write() -> None:
        numbers.extend(store.add(entry()) for _ in range(50))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 201))
    lines = (tmp_path / "logs" / "server.log").read_text().splitlines()
    assert [json.loads(line)["sequence"] for line in lines] == list(range(1, 201))


def test_a_record_that_does_not_match_its_arguments_raises_nothing(
    handler: StoreHandler, store: LogStore, capsys: pytest.CaptureFixture[str]
) -> None:
    handler.handle(logging.makeLogRecord({"msg": "%d", "args": ("x",)}))
    assert messages(store) == []
    assert "Logging error" in capsys.readouterr().err


MIXED = (
    entry("Started", level="info", context={"runId": "R-1"}),
    entry("Broke", level="error", requestId="req-9"),
    entry("odd", level="warn", source="client", timestamp="2026-01-02T03:04:06.000Z"),
    entry("fine print", level="debug", context={"word": "Größe"}),
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "Started Broke odd fine print"),
        ("level=error,warn", "Broke odd"),
        ("level=error&level=debug", "Broke fine print"),
        ("level=loud", "Started Broke odd fine print"),
        ("source=client", "odd"),
        ("source=client-chat", "Started Broke odd fine print"),
        ("text=BROKE", "Broke"),
        ("text=r-1", "Started"),
        ("text=req-9", "Broke"),
        ("text=gr%C3%B6%C3%9Fe", "fine print"),
        ("text=nothing", ""),
        ("since=1767323046000", "odd"),
        ("until=1767323045678", "Started Broke fine print"),
        ("sinceSequence=2", "odd fine print"),
        ("sinceSequence=99", ""),
        ("limit=2", "odd fine print"),
        ("limit=0", "fine print"),
        ("limit=-5", "fine print"),
        ("limit=9999&level=info", "Started"),
    ],
)
def test_filters_select_entries(make_store: MakeStore, query: str, expected: str) -> None:
    store = make_store()
    for each in MIXED:
        store.add(each)
    assert " ".join(messages(store, query)) == expected


@pytest.mark.parametrize("query", ["limit=many", "since=now", "sinceSequence=1.5", "until=1e3"])
def test_an_invalid_number_is_refused(query: str) -> None:
    with pytest.raises(InvalidInput, match=query.partition("=")[0]):
        LogQuery.read(QueryDict(query))
