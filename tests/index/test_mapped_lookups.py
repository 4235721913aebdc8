"""Look-ups in the parts of a root answer for all of its live files, and for these alone."""

import tracemalloc
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from uuid import uuid4

import numpy as np
import pytest

from apps.code.values import Symbol
from apps.index.mapped import files, lists, lookups
from apps.index.mapped.definitions import SEVERAL
from apps.index.mapped.framed_rows import FRAME_ROWS, FramedRows, line_of
from apps.index.mapped.part import Part
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root
from apps.index.types import ChunkFacts, ChunkRecord, StoredSymbol
from tests.support.random_parts import Source, Sources, built

ALL = 10_000


class Library:
    """Random files in parts, and what is live of them."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)
        self.sources = Sources(self.random)
        self.parts: list[Part] = []
        self.live: dict[str, Source] = {}  # by path

    def write(self, *sources: Source) -> None:
        """Write files in a part."""
        self.parts.append(replace(built(sources), name=f"part {len(self.parts)}"))
        self.live |= {source.row.path: source for source in sources}

    def some(self, count: int) -> list[Source]:
        choice = self.random.choice
        return [
            self.sources.source(choice((0, 1, 2, 5, 70)), choice((0, 1, 3, 30)))
            for _ in range(count)
        ]

    @property
    def root(self) -> MappedRoot:
        documents = {str(file.row.document) for file in self.live.values()}
        taken = lists.taken([self.parts], documents)
        return MappedRoot.of(Root(generation=1), taken)

    def check(self) -> None:
        root, stored = self.root, [symbol for file in self.live.values() for symbol in of(file)]
        for file in self.live.values():
            outline = lookups.outline(root.parts, str(file.row.document))
            assert by_place(outline) == by_place(of(file))
            assert [symbol.start_line for symbol in outline] == sorted(
                symbol.start_line for symbol in of(file)
            )
            self._check_facts(root, file)
        names = {symbol.name for symbol in stored}
        for name in sorted({*names, *map(str.swapcase, names), "no such name"}):
            expected = [symbol for symbol in stored if symbol.name == name] or [
                symbol for symbol in stored if folded(symbol.name) == folded(name)
            ]
            assert by_place(lookups.definitions(root.parts, name)) == by_place(expected)
        for most in (1, ALL):
            wanted = {
                name: by_place(symbol for symbol in stored if symbol.name == name)
                for name in names
                if sum(folded(symbol.name) == folded(name) for symbol in stored) <= most
            }
            of_names = lookups.definitions_of_names(root.parts, [*names, "no such name"], most)
            assert {name: by_place(some) for name, some in of_names.items()} == wanted
        for prefix in {name[:size] for name in names for size in (1, 2, 3)}:
            expected = [s for s in stored if folded(s.name).startswith(folded(prefix))]
            found = lookups.symbols_beginning(root.parts, prefix, ALL)
            assert by_place(found) == by_place(expected)
            assert [folded(s.name) for s in found] == sorted(folded(s.name) for s in found)
            assert lookups.symbols_beginning(root.parts, prefix, 2) == found[:2]

    def _check_facts(self, root: MappedRoot, file: Source) -> None:
        ids = [record.id for record in file.chunks]
        others = "no such chunk:0", f"{file.row.document}:99999", f"{file.row.document}:x"
        assert lookups.facts(root.parts, [*ids, *others]) == {
            r.id: facts_of(r) for r in file.chunks
        }


def folded(name: str) -> bytes:
    """Without the case of ASCII letters."""
    return name.encode("utf-8", "surrogatepass").lower()


def of(file: Source) -> list[StoredSymbol]:
    row = file.row
    place = {"source_file": str(row.document), "file_path": row.path, "language": row.language}
    return [
        StoredSymbol(s.name, s.path, s.kind, s.start_line, s.end_line, s.signature, **place)
        for s in file.symbols
    ]


def by_place(symbols: Iterable[StoredSymbol]) -> list[StoredSymbol]:
    return sorted(symbols, key=lambda s: (s.file_path, s.start_line, s.end_line, s.name))


def facts_of(record: ChunkRecord) -> ChunkFacts:
    chunk = record.chunk
    return ChunkFacts(
        record.id,
        record.source_file,
        record.path,
        record.index,
        chunk.start_line,
        chunk.end_line,
        chunk.symbol,
        chunk.names,
        chunk.signature,
        record.language,
        record.sha256,
        chunk.offset,
        len(chunk.text),
    )


@pytest.mark.parametrize("seed", range(3))
def test_parts_answer_for_what_is_live_while_files_change(seed: int) -> None:
    library = Library(seed)
    library.write(*library.some(8))
    library.write(library.sources.source(450, 5))
    library.check()
    for _ in range(3):
        for path in library.random.sample(sorted(library.live), 3):
            del library.live[path]
        library.write(*library.some(3))
        library.check()


def test_rows_of_many_frames_are_read_without_holding_the_frames() -> None:
    """A name has definitions anywhere in a repository: 64 others are in the frame of each."""
    rows = FramedRows.of([line_of(("x" * 100, number)) for number in range(200 * FRAME_ROWS)])
    numbers = [*range(0, 200 * FRAME_ROWS, FRAME_ROWS)]
    Random(0).shuffle(numbers)
    numbers.append(numbers[0])
    tracemalloc.start()
    try:
        values = rows.read(numbers)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [value[1] for value in values] == numbers
    # All frames have 1.4 MB.
    assert peak < 400_000


def test_a_file_that_has_definitions_alone_is_found() -> None:
    """No chunk of it has a vector."""
    library = Library()
    source = library.sources.source(0, 3)
    library.write(library.sources.source(5, 0), source)
    assert len(lookups.outline(library.root.parts, str(source.row.document))) == 3
    assert lookups.outline(library.root.parts, str(uuid4())) == []


def test_a_name_in_another_case_is_found_if_no_other_has_it() -> None:
    library = Library()
    symbols = tuple(Symbol(name, name, "function", 1, 2) for name in ("Get", "get", "Größe"))
    library.write(replace(library.sources.source(3, 0), symbols=symbols))

    def found(name: str) -> list[str]:
        return [symbol.name for symbol in lookups.definitions(library.root.parts, name)]

    assert (found("get"), found("Get")) == (["get"], ["Get"])
    assert sorted(found("GET")) == ["Get", "get"]
    # Letters of other alphabets have to be equal.
    assert (found("grÖße"), found("GRöße")) == ([], ["Größe"])


def test_names_that_begin_alike_are_told_apart() -> None:
    """Several names are looked up at once by their first eight bytes."""
    long = "transform"
    names = [*(long[:size] for size in range(1, 10)), *(f"{long}{end}" for end in "sed"), "Größe"]
    library = Library()
    symbols = tuple(Symbol(name, name, "function", 1, 2) for name in names)
    library.write(replace(library.sources.source(3, 0), symbols=symbols))
    asked = [*names, "", "transfo_", "transformer", "zzz"]
    found = lookups.definitions_of_names(library.root.parts, asked, ALL)
    assert {name: [one.name for one in some] for name, some in found.items()} == {
        name: [name] for name in names
    }


def test_a_definition_is_read_as_it_was_written() -> None:
    """A part does not repeat its name in path and signature."""
    texts = ("", "run", "run run(run)", "a\0b", "[0]", "Outer.run", "\0")
    symbols = [
        Symbol(name, path, "function", 1 + line, 3 * line + 1, signature)
        for name in ("run", "", "\0")
        for line, (path, signature) in enumerate((path, text) for path in texts for text in texts)
    ]
    library = Library()
    library.write(file := replace(library.sources.source(1, 0), symbols=tuple(symbols)))
    outline = lookups.outline(library.root.parts, str(file.row.document))
    assert by_place(outline) == by_place(of(file))


def test_a_name_that_only_chunks_declare_has_no_definition() -> None:
    library = Library()
    file = library.sources.source(3, 0)
    chunk = replace(file.chunks[0].chunk, names=("Only", "only", "transform"))
    file.chunks[0] = replace(file.chunks[0], chunk=chunk)
    symbol = Symbol("transfer", "transfer", "function", 1, 2)
    library.write(replace(file, symbols=(symbol,)))
    parts = library.root.parts
    assert not lookups.definitions(parts, "only")
    assert not lookups.definitions_of_names(parts, ["Only", "transform"], ALL)
    assert [one.name for one in lookups.symbols_beginning(parts, "", ALL)] == ["transfer"]
    assert [one.name for one in lookups.symbols_alike(parts, "transferm", ALL)] == ["transfer"]
    assert not lookups.symbols_alike(parts, "onlyy", ALL)
    library.check()


@pytest.mark.parametrize(
    ("harm", "value"),
    [("content", 0), ("ends", 0), ("numbers", 1 << 20), ("numbers", SEVERAL | 1 << 20)]
    + [("places", 1 << 20), ("places", 0)],
)
def test_a_damaged_part_is_an_error_and_no_answer(harm: str, value: int) -> None:
    library = Library()
    library.write(library.sources.source(5, 100))
    (part,) = library.parts
    name = part.definitions.rows.read([0])[0][0]
    broken = np.full_like(getattr(part.definitions, harm), value)
    library.parts = [replace(part, definitions=part.definitions._replace(**{harm: broken}))]
    with pytest.raises(files.Damaged):
        lookups.definitions(library.root.parts, name)
