"""Server-sent events, wherever the network splits them."""

import pytest

from apps.core.http.event_stream import EventReader


def read(sent: bytes, size: int) -> list[str]:
    reader = EventReader()
    pieces = (sent[at : at + size] for at in range(0, len(sent), size))
    return [data for piece in pieces for data in reader.feed(piece)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_in_any_way_and_are_split_anywhere(end: bytes, size: int) -> None:
    lines = [b": a comment", b"event: x", b"data: one", b"id: 1", b"data:two", b"", b"", b"data"]
    assert read(end.join([*lines, b"", b"data:  three", b"", b"data: no end"]), size) == [
        "one\ntwo",
        "",
        " three",
    ]


def test_what_came_before_bytes_that_are_not_utf8_is_read() -> None:
    events = EventReader().feed(b"data: one\n\ndata: \xff\n\n")
    assert next(events) == "one"
    with pytest.raises(UnicodeDecodeError):
        next(events)
