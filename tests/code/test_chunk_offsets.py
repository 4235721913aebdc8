"""Each chunk knows where it is in the text of its file, also after it was split for an embedder."""

import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.code.chunking import decode, lines_of
from apps.code.values import Chunk
from apps.embedding.texts import split_to_fit
from apps.index.parsing import Chunker
from tests.code.language_samples import SAMPLES

INSTALLED = Path(sysconfig.get_paths()["purelib"])


def assert_in_place(text: str, chunk: Chunk) -> None:
    end = chunk.offset + len(chunk.text)
    assert text[chunk.offset : end] == chunk.text
    assert chunk.start_line == text.count("\n", 0, chunk.offset) + 1
    assert chunk.end_line == text.count("\n", 0, end) + 1


@pytest.fixture(scope="module", params=[1_500, 60])
def chunker(request: pytest.FixtureRequest) -> Iterator[Chunker]:
    """Chunks of the usual size, and such small ones that everything must be cut."""
    with Chunker(parse_seconds=10, max_chars=request.param) as made:
        yield made


def check(chunker: Chunker, path: str, data: bytes) -> int:
    """Check the chunks of a file, and their parts. Return their number."""
    file = chunker.chunk_many([(path, data)])[0]
    assert file.text == "\n".join(lines_of(decode(data)))
    for chunk in file.chunks:
        assert_in_place(file.text, chunk)
        for piece in split_to_fit(path, chunk, 60):
            assert_in_place(file.text, piece)
    return len(file.chunks)


@pytest.mark.door
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_chunks_of_each_language_are_in_their_place(chunker: Chunker, ending: str) -> None:
    for sample in SAMPLES:
        source = sample.source.replace("HERE", "Hafen 港 😀").replace("\n", ending)
        assert check(chunker, sample.path, source.encode())


@pytest.mark.door
@pytest.mark.parametrize("pattern", ["django/db/models/*.py", "**/*.js", "**/*.html", "**/*.txt"])
def test_chunks_of_installed_files_are_in_their_place(chunker: Chunker, pattern: str) -> None:
    found = sorted(INSTALLED.glob(pattern))[::7][:20]
    small = [path for path in found if path.is_file() and path.stat().st_size < 150_000]
    assert sum(check(chunker, path.name, path.read_bytes()) for path in small) > 20


@pytest.mark.door
@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfx = 1\r\ny = 2\r\n",
        b"a\0b\n\xff\xfe\n",
        "é = 1\nb = 2\n".encode("utf-16"),
        b"\n\n\r\n  \nx = 1\n\n\n" + b"y = " + b"9" * 4_000 + b"\n\nz = 3",
        b"one\x0ctwo\x1cthree\rfour\n\xe2\x80\xa8five\n",
    ],
)
def test_chunks_of_odd_bytes_are_in_their_place(chunker: Chunker, data: bytes) -> None:
    assert check(chunker, "a.py", data)


LINES = st.lists(
    st.text("ab1({;,. \té港😀", max_size=40) | st.sampled_from(["", " ", "x" * 200, "日本語" * 50]),
    min_size=1,
    max_size=30,
)


@given(before=LINES, lines=LINES, after=LINES, max_tokens=st.integers(1, 120))
def test_a_chunk_that_is_split_for_an_embedder_stays_in_its_place(
    before: list[str], lines: list[str], after: list[str], max_tokens: int
) -> None:
    text = "\n".join([*before, *lines, *after])
    offset = sum(len(line) + 1 for line in before)
    start, end = len(before) + 1, len(before) + len(lines)
    whole = Chunk("\n".join(lines), start, end, "Report.total", ("total",), offset=offset)
    pieces = split_to_fit("src/report.py", whole, max_tokens)
    for piece in pieces:
        assert_in_place(text, piece)
    covered = {at for each in pieces for at in range(each.offset, each.offset + len(each.text))}
    rest = (text[at] for at in range(offset, offset + len(whole.text)) if at not in covered)
    assert not "".join(rest).strip()
