"""The names and symbols of chunks, in each language."""

from collections.abc import Iterator

import pytest

from apps.code.languages import FILE_TYPES, language_of
from apps.code.values import Chunk
from apps.index.parsing import Chunker
from tests.code.language_samples import SAMPLES, Sample


@pytest.fixture(scope="module")
def tight() -> Iterator[Chunker]:
    """Chunks of a line or two, so that a definition is distinguished from its neighbours."""
    with Chunker(parse_seconds=10, max_chars=60) as chunker:
        yield chunker


def around(chunks: tuple[Chunk, ...], word: str) -> Chunk:
    (chunk,) = [chunk for chunk in chunks if word in chunk.text]
    return chunk


@pytest.mark.door
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.path)
def test_names_are_those_declared_in_order(tight: Chunker, sample: Sample) -> None:
    chunks = tight.chunk_many([(sample.path, sample.source.encode())])[0].chunks
    found = list(dict.fromkeys(name for chunk in chunks for name in chunk.names))
    assert found == sample.names.split("|" if "|" in sample.names else None)


@pytest.mark.door
@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.symbol], ids=lambda sample: sample.path)
def test_the_symbol_is_the_path_of_the_enclosing_definitions(
    tight: Chunker, sample: Sample
) -> None:
    source = sample.source.replace("HERE", "HERE" + "x" * 40)  # fills a chunk alone
    chunk = around(tight.chunk_many([(sample.path, source.encode())])[0].chunks, "HERE")
    assert chunk.symbol == sample.symbol
    if sample.signature:
        assert chunk.signature == sample.signature


PADDING = "    # this line is here to make the thing longer than two hundred characters\n" * 3


@pytest.mark.door
def test_a_definition_is_one_chunk_with_its_leading_comment() -> None:
    source = (
        f"import os\n\n\ndef first():\n{PADDING}    return 1\n\n\n"
        "# What it is for,\n# in two lines.\n@cached\n@named('x')\n"
        f"def second():\n{PADDING}    return 2\n"
    )
    source += (
        f"\n\nclass Third:\n    '''Doc.'''\n\n    def method(self):\n{PADDING}        pass\n" * 6
    )
    with Chunker(parse_seconds=10) as chunker:
        chunks = chunker.chunk_many([("a.py", source.encode())])[0].chunks
    first, second, *thirds = chunks
    assert first.text.startswith("import os")
    assert first.symbol == "first"
    assert second.text.startswith("# What it is for,")
    assert second.text.endswith("return 2")
    assert (second.symbol, second.names, second.signature) == (
        "second",
        ("second",),
        "def second()",
    )
    assert [third.symbol for third in thirds] == ["Third"] * 6
    assert all(third.names == ("Third", "method") for third in thirds)


@pytest.mark.door
def test_small_ranges_are_merged_and_small_files_stay_whole() -> None:
    methods = "".join(f"    def m{i}(self):\n        return {i}\n\n" for i in range(60))
    with Chunker(parse_seconds=10) as chunker:
        small, large = chunker.chunk_many(
            [
                ("a.py", b"def a(): pass\n\n\ndef b(): pass\n"),
                ("b.py", f"class A:\n{methods}".encode()),
            ]
        )
    assert [(c.start_line, c.end_line, c.names) for c in small.chunks] == [(1, 4, ("a", "b"))]
    assert {chunk.symbol for chunk in large.chunks} == {"A"}
    assert all(200 <= len(chunk.text) <= 1_500 for chunk in large.chunks)


@pytest.mark.door
def test_a_long_function_is_split_between_statements_into_even_parts() -> None:
    body = "".join(f"    if value == {i}:\n        result.append(value + {i})\n" for i in range(60))
    with Chunker(parse_seconds=10) as chunker:
        chunks = chunker.chunk_many([("a.py", f"def long(value):\n{body}".encode())])[0].chunks
    assert len(chunks) > 2
    assert all(chunk.symbol == "long" for chunk in chunks)
    assert all(chunk.text.lstrip().startswith(("if", "def")) for chunk in chunks)
    sizes = [len(chunk.text) for chunk in chunks]
    assert min(sizes) > max(sizes) / 2


def test_the_first_line_of_a_script_gives_its_language() -> None:
    assert language_of("bin/run", b"#!/usr/bin/env python3.12\n").name == "python"
    assert language_of("bin/run", b"#!/bin/sh -e\n").name == "bash"
    assert language_of("bin/run", b"plain").name == "text"


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a.PY", "python"),
        ("src/Dockerfile.dev", "dockerfile"),
        ("conf.py.example", "python"),
        ("README", "text"),
        ("README.md", "markdown"),
        ("build.log", "text"),
        ("a/.gitignore", "ignore"),
        ("x.tar.gz", "text"),
    ],
)
def test_an_extension_or_file_name_gives_the_language(path: str, language: str) -> None:
    assert language_of(path).name == language


@pytest.mark.parametrize(
    ("path", "text", "language"),
    [
        ("a.h", "#ifndef A_H\n// class A {\nint f(int a); /* std::x */\n", "c"),
        ("a.h", '#ifdef __cplusplus\nextern "C" {\n#endif\nstruct a { int class_; };\n', "c"),
        ("a.h", "namespace audio {\nint f();\n}\n", "cpp"),
        ("a.h", "class Sampler final {\n public:\n  int f();\n};\n", "cpp"),
        ("a.h", "#include <vector>\nint f();\n", "cpp"),
        ("a.h", "#import <A/A.h>\n@interface Shop : NSObject\n@end\n", "objc"),
        ("a.cls", "public class A { }\n", "apex"),
        ("a.cls", "% A class\n\\ProvidesClass{a}\n", "tex"),
        ("a.cls", 'VERSION 1.0 CLASS\nAttribute VB_Name = "A"\n', "visualbasic"),
        ("a.fs", "module A\nlet f x = x\n", "fsharp"),
        ("a.fs", "#version 330\nvoid main() { }\n", "glsl"),
    ],
)
def test_the_content_decides_between_languages_of_one_extension(
    path: str, text: str, language: str
) -> None:
    assert language_of(path, text.encode()).name == language


def test_the_table_of_languages_is_sound() -> None:
    """No name twice, no grammar that hangs."""
    extensions = [extension for kind in FILE_TYPES for extension in kind.extensions]
    names = [name for kind in FILE_TYPES for name in kind.names]
    assert len(set(extensions)) == len(extensions)
    assert len(set(names)) == len(names)
    assert all(word == word.lower() for word in extensions + names)
    assert "cobol" not in {kind.grammar for kind in FILE_TYPES}
