"""Each chunk is exactly its lines, and all chunks together are the whole file."""

import hashlib
import sysconfig
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.code.chunking import decode, lines_of
from apps.code.values import Chunk, ChunkedFile
from apps.index.parsing import Chunker

pytestmark = pytest.mark.door

MAX_CHARS = 1_500
INSTALLED = Path(sysconfig.get_paths()["purelib"])
EXTENSIONS = "py pyi js ts tsx css scss html md rst txt json yaml yml toml c h cpp go rs sh sql ini"


@pytest.fixture(scope="module")
def chunker() -> Iterator[Chunker]:
    with Chunker(parse_seconds=10) as chunker:
        yield chunker


@pytest.fixture(scope="module")
def narrow() -> Iterator[Chunker]:
    """Chunks so small that everything must be cut."""
    with Chunker(parse_seconds=10, max_chars=60) as chunker:
        yield chunker


def check(file: ChunkedFile, data: bytes, max_chars: int) -> None:
    lines = lines_of(decode(data))
    covered: set[int] = set()
    previous_end = 0
    for (start, end), same in groupby(file.chunks, lambda c: (c.start_line, c.end_line)):
        parts = list(same)
        assert previous_end < start <= end <= len(lines)
        previous_end = end
        covered.update(range(start, end + 1))
        check_text(parts, lines[start - 1 : end], max_chars)
    assert all(number in covered for number, line in enumerate(lines, 1) if line.strip())


def check_text(parts: list[Chunk], lines: list[str], max_chars: int) -> None:
    assert lines[0].strip() and lines[-1].strip()
    assert all(part.text.strip() and len(part.text) <= max_chars for part in parts)
    if len(parts) == 1 and len(lines[0]) <= max_chars:
        assert parts[0].text == "\n".join(lines)
        return
    (line,) = lines  # only a single line is ever split
    at = 0
    for part in parts:
        at = line.index(part.text, at) + len(part.text)
    assert "".join("".join(part.text for part in parts).split()) == "".join(line.split())


@cache
def installed() -> Mapping[str, list[Path]]:
    """The files of the installed packages, by their extensions."""
    files = defaultdict(list)
    for path in INSTALLED.rglob("*.*"):
        files[path.suffix[1:]].append(path)
    return files


def sample(extension: str) -> list[Path]:
    """Some files of the installed packages, the same ones each time."""
    found = sorted(installed()[extension], key=lambda path: (path.name[::-1], path))
    small = [path for path in found if path.is_file() and path.stat().st_size < 150_000]
    return small[:: max(1, len(small) // 12)][:12]


@pytest.mark.parametrize("extension", EXTENSIONS.split())
def test_chunks_of_installed_files_are_the_lines_they_name(
    chunker: Chunker, extension: str
) -> None:
    paths = sample(extension) or [Path(__file__)]
    items = [(path.name, path.read_bytes()) for path in paths]
    for file, (_, data) in zip(chunker.chunk_many(items), items, strict=True):
        check(file, data, MAX_CHARS)


@pytest.mark.door
@pytest.mark.parametrize("extension", ["py", "js", "md", "html", "json", "css", "rst"])
def test_chunks_of_sixty_characters_are_the_lines_they_name(
    narrow: Chunker, extension: str
) -> None:
    items = [(path.name, path.read_bytes()) for path in sample(extension)[:4]]
    assert items
    for file, (_, data) in zip(narrow.chunk_many(items), items, strict=True):
        check(file, data, 60)


SNIPPETS = st.sampled_from(
    [
        *(
            "def f(a):",
            "    return a",
            "class A:",
            "  # note",
            "",
            "   ",
            "\t",
            "}",
            "{",
            "]",
            "x = [",
        ),
        *(
            "function g() {",
            "# Head",
            "- item",
            "```",
            "<div>",
            "</div>",
            '"""',
            "\u2028",
            "\r",
            "*/",
        ),
        *(
            "a" * 200,
            "é" * 70,
            "key: value",
            "/* open",
            "if x {",
            "\x0c",
            "\x1c",
            "[table]",
            "all: a",
        ),
    ]
)
BREAKS = st.sampled_from(["\n", "\r\n"])
TEXTS = st.lists(st.tuples(SNIPPETS | st.text(max_size=30), BREAKS), max_size=40).map(
    lambda rows: "".join(line + end for line, end in rows)
)
NAMES = st.sampled_from(
    ["a.py", "a.js", "a.tsx", "a.html", "a.json", "a.toml", "a.go", "a.rb", "Makefile", "a.txt"]
)


@settings(max_examples=150, deadline=None)
@given(name=NAMES, text=TEXTS)
def test_any_text_is_chunked_in_any_language(narrow: Chunker, name: str, text: str) -> None:
    data = text.encode("utf-8", "replace")
    check(narrow.chunk_many([(name, data)])[0], data, 60)


@pytest.mark.fault("Huge, minified and binary files")
@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=400))
def test_any_bytes_are_chunked(narrow: Chunker, data: bytes) -> None:
    check(narrow.chunk_many([("a.py", data)])[0], data, 60)


@pytest.mark.fault("Huge, minified and binary files")
@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\n", ["a\rb"]),
        (b"a\x0bb\x0cc\xe2\x80\xa8d\n", ["a\x0bb\x0cc\u2028d"]),
        (b"\xef\xbb\xbfa\n", ["a"]),
        (b"a\0b\n", ["a\ufffdb"]),
        (b"caf\xe9\n", ["caf\ufffd"]),
        ("é\nb".encode("utf-16"), ["é", "b"]),
        (b"\xfe\xff" + "é\nb".encode("utf-16-be"), ["é", "b"]),
        ("é\nb".encode("utf-32"), ["é", "b"]),
        (b"\xff\xfea\0\n\0", ["a"]),
    ],
)
def test_lines_are_numbered_by_line_feeds_alone(data: bytes, lines: list[str]) -> None:
    assert lines_of(decode(data)) == lines


@pytest.mark.fault("Huge, minified and binary files")
@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b" \t\r\n ", b"\xef\xbb\xbf", b"\xef\xbb\xbf \n", b"\x0c\n"]
)
@pytest.mark.parametrize("name", ["a.py", "a.md", "a.txt", "unknown"])
def test_a_file_without_text_has_no_chunks(chunker: Chunker, name: str, data: bytes) -> None:
    assert chunker.chunk_many([(name, data)])[0].chunks == ()


def test_a_line_too_long_for_one_chunk_is_split_and_keeps_its_number(chunker: Chunker) -> None:
    long = "x = '" + "abc " * 1_000 + "'"
    data = f"a = 1\n{long}\nb = 2\n".encode()
    file = chunker.chunk_many([("a.py", data)])[0]
    check(file, data, MAX_CHARS)
    parts = [chunk for chunk in file.chunks if chunk.start_line == 2]
    assert [len(part.text) for part in parts] == [1_500, 1_500, 1_006]
    assert "".join(part.text for part in parts) == long
    assert [part.names for part in parts] == [("x",), (), ()]


@pytest.mark.fault("Huge, minified and binary files")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "x = 1\n" * 100_000),
        ("a.py", "def f():\n    return 1\n\n" * 30_000),
        ("a.json", "[\n" * 20_000 + "]\n" * 20_000),
        ("a.js", "function f(){\n" * 3_000 + "}\n" * 3_000),
        ("a.py", "x = (1 +\n" + "2 +\n" * 30_000 + "3)\n"),
        ("a.txt", "a line of text\n" * 300_000),
        ("a.py", "}{)(*&^%$#@!\n" * 10_000),
    ],
    ids=["statements", "functions", "deep json", "deep js", "deep sum", "long text", "garbage"],
)
def test_huge_and_deep_files_are_chunked(chunker: Chunker, name: str, text: str) -> None:
    data = text.encode()
    file = chunker.chunk_many([(name, data)])[0]
    check(file, data, MAX_CHARS)
    full = sum(len(chunk.text) for chunk in file.chunks) / len(file.chunks)
    assert full > MAX_CHARS / 2


@pytest.mark.door
def test_the_hash_is_of_the_bytes_and_the_order_is_kept(chunker: Chunker) -> None:
    items = [(f"{number}.{'py' if number % 2 else 'txt'}", b"x = 1") for number in range(200)]
    files = chunker.chunk_many(items)
    assert [file.path for file in files] == [path for path, _ in items]
    assert {file.sha256 for file in files} == {hashlib.sha256(b"x = 1").hexdigest()}
