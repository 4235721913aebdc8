"""Chunks are split to fit the token limit of an embedder, and no text is lost."""

import pytest

from apps.code.values import Chunk
from apps.embedding.texts import embedding_text, estimate_tokens, head, split_to_fit

CODE = "\n".join(f"    total_{number} = rows[{number}].amount * rate" for number in range(40))


def chunk(text: str, start: int = 101) -> Chunk:
    end = start + text.count("\n")
    return Chunk(text, start, end, symbol="Report.total", names=("total",), signature="def total")


def sizes(pieces: list[Chunk]) -> list[int]:
    return [estimate_tokens(embedding_text("src/report.py", piece).joined()) for piece in pieces]


def test_an_embedder_without_a_limit_takes_any_chunk() -> None:
    whole = chunk(CODE * 100)
    assert split_to_fit("src/report.py", whole, None) == [whole]


def test_a_chunk_that_fits_stays_as_it_is() -> None:
    whole = chunk(CODE)
    assert split_to_fit("src/report.py", whole, 10_000) == [whole]


@pytest.mark.parametrize("limit", [60, 100, 435])
def test_a_chunk_that_does_not_fit_is_split_between_lines(limit: int) -> None:
    pieces = split_to_fit("src/report.py", chunk(CODE), limit)
    assert len(pieces) > 1
    assert "\n".join(piece.text for piece in pieces) == CODE
    assert max(sizes(pieces)) <= limit
    lines = CODE.split("\n")
    for piece in pieces:
        assert piece.text == "\n".join(lines[piece.start_line - 101 : piece.end_line - 100])
        assert (piece.symbol, piece.names) == ("Report.total", ("total",))


@pytest.mark.parametrize("line", ["x" * 3_000, "日本語" * 500, '{"a":1,' * 400, "😀" * 300])
def test_a_line_that_is_too_long_is_split_into_parts(line: str) -> None:
    pieces = split_to_fit("src/report.py", chunk(f"before\n{line}\nafter"), 100)
    assert [piece.text for piece in pieces][0] == "before"
    assert [piece.text for piece in pieces][-1] == "after"
    parts = pieces[1:-1]
    assert "".join(piece.text for piece in parts) == line
    assert {(piece.start_line, piece.end_line) for piece in parts} == {(102, 102)}
    assert max(sizes(pieces)) <= 100


def test_blank_pieces_are_left_out() -> None:
    pieces = split_to_fit("src/report.py", chunk("a\n" + "\n" * 500 + "b"), 100)
    assert all(piece.text.strip() for piece in pieces)
    assert (pieces[0].start_line, pieces[-1].end_line) == (101, 602)


def test_a_header_that_takes_all_tokens_does_not_stop_the_split() -> None:
    pieces = split_to_fit("src/" + "deep/" * 100 + "report.py", chunk("value = 1"), 20)
    assert "".join(piece.text for piece in pieces) == "value = 1"


def test_the_fields_of_a_chunk_have_its_path_and_names() -> None:
    text = embedding_text("src/report.py", chunk("x = 1"))
    assert (text.path, text.symbol, text.signature) == (
        "src/report.py",
        "Report.total total",
        "def total",
    )
    assert text.joined() == "src/report.py Report.total total\nx = 1"


def test_the_estimate_is_an_upper_bound() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("1234") == 4
    assert estimate_tokens("():;") == 4
    assert estimate_tokens("日") == 3
    assert estimate_tokens("\ud800") >= 1
    assert head("one two three", 1_000) == "one two three"
    assert "one two three".startswith(head("one two three", 4))
