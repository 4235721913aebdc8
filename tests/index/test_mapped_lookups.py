"""Look-ups in the parts of a root answer as the word index does, for the live files alone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import cast
from uuid import UUID, uuid4
from zlib import crc32

import numpy as np
import pytest

from apps.code.values import Chunk, ChunkedFile, Symbol
from apps.embedding.types import Vectors
from apps.index.lexical import LexicalStore
from apps.index.mapped import building, files
from apps.index.mapped.codes import Codes
from apps.index.mapped.copies import MappedCopies
from apps.index.mapped.part_builder import PartBuilder
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root, SourceFile
from apps.index.records import records
from apps.index.types import ChunkRecord
from apps.index.vectors.store import VectorStore
from benchmarks.shadow import Shadow
from tests.support.mapped import unit_vectors

DIMENSION = 8
LETTERS = ("a", "A", "b", "B", "_", "é", "É", "ß", "1", "\U0001f600", "\uffff")


class Library:
    """Roots that share a store, with random files."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.lexical = LexicalStore(folder / "lexical")
        self.copies = MappedCopies(folder / "mapped")
        self.random = Random(seed)
        self.store = uuid4()
        self.roots: list[Root] = []
        self.apart = True
        self.live: dict[UUID, dict[str, SourceFile]] = {}  # by root and path
        self._rest: list[ChunkRecord] = []
        # What a run has of each file.
        self.read: list[tuple[SourceFile, tuple[Symbol, ...], list[ChunkRecord]]] = []

    def root(self) -> Root:
        number = len(self.roots)
        made = Root(id=uuid4(), store=self.store, name=f"r{number}", path="/r", model="m")
        self.roots.append(made)
        self.live[made.id] = {}
        return made

    def change(
        self, root: Root, path: str, *, chunks: int | None = None, symbols: int | None = None
    ) -> None:
        """Write another version of a file. Some of its chunks have no vector, and so no row."""
        size = self.random.choice((0, 1, 2, 5, 70)) if chunks is None else chunks
        definitions = self.random.choice((0, 1, 3, 30)) if symbols is None else symbols
        made = ChunkedFile(
            path,
            sha256=f"{self.random.getrandbits(256):064x}",
            language=path.rpartition(".")[2],
            chunks=tuple(self._chunk(number) for number in range(size)),
            symbols=tuple(self._symbol() for _ in range(definitions)),
        )
        row = SourceFile(
            path=path, language=made.language, sha256=made.sha256, run_id=uuid4(), chunks=size
        )
        all_records = [record for record, _ in records([(row, made)])]
        stored = [each for each in all_records if self.random.random() < 0.9]
        # The chunks of a file may be apart, those of another one between them.
        half = self.random.choice((0, len(stored) // 2)) if self.apart else 0
        self.lexical.add(self.store, stored[half:] + self._rest)
        self._rest = stored[:half]
        self.lexical.add_symbols(self.store, [(row, made)])
        row.embedded = len(stored)
        self.live[root.id][path] = row

        self.read.append((row, made.symbols, stored))

    def publish(self, root: Root) -> MappedRoot:
        self.lexical.add(self.store, self._rest)
        rows = self.live[root.id].values()
        root.generation += 1
        root.embedded = root.chunks = sum(row.embedded for row in rows)
        root.files = len(rows)
        store = cast(VectorStore, self)
        mapped = self.copies.write(root, self.documents(root), self.lexical, store, "ours")
        assert mapped is not None
        return mapped

    def check(self, root: Root, mapped: MappedRoot) -> None:
        for each in Shadow(root, self.documents(root), self.lexical, mapped).comparisons():
            assert each.parts == each.words, f"{each.kind} {each.question!r}"

    def documents(self, root: Root) -> frozenset[str]:
        return frozenset(str(row.document) for row in self.live[root.id].values())

    def vectors(self, root_id: UUID, ids: list[str]) -> Vectors:
        """The verb of a VectorStore."""
        seeds = [crc32(each.encode()) for each in ids]
        return np.concatenate(
            [
                np.zeros((0, DIMENSION), np.float32),
                *(unit_vectors(1, DIMENSION, seed) for seed in seeds),
            ]
        )

    def _name(self) -> str:
        return "".join(self.random.choices(LETTERS, k=self.random.randint(1, 3)))

    def _chunk(self, number: int) -> Chunk:
        names = tuple(self._name() for _ in range(self.random.randint(0, 3)))
        symbol, signature = self.random.choice((("", ""), ("A.b", "def b(self, é):\n")))
        text = " ".join(self._name() * self.random.choice((1, 1, 300)) for _ in range(5))
        return Chunk(
            f"chunk {number} {text}", number, number + 3, symbol, names, signature, 100 * number
        )

    def _symbol(self) -> Symbol:
        name, line, end = self._name(), self.random.randint(1, 40), self.random.randint(0, 9)
        return Symbol(name, f"Outer.{name}", "function", line, line + end, f"def {name}():")


@pytest.fixture
def library(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Library]:
    made = Library(tmp_path, getattr(request, "param", 0))
    yield made
    made.lexical.close()


@pytest.mark.parametrize("library", range(2), indirect=True)
def test_parts_answer_as_the_words_while_roots_of_a_store_change(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "PART_ROWS", 200)
    roots = [library.root(), library.root()]
    for number in range(6):
        library.change(roots[0], f"{number % 3}/{number}.py")
    library.change(roots[0], "large.py", chunks=450, symbols=5)
    library.live[roots[1].id] |= library.live[roots[0].id]
    for _ in range(2):
        for root in roots:
            paths = sorted(library.live[root.id])
            for path in library.random.sample(paths, 2):
                library.change(root, path)
            del library.live[root.id][library.random.choice(paths)]
            library.change(root, f"new/{library.random.randint(0, 99)}.rs", chunks=1)
            library.check(root, library.publish(root))


def test_a_new_file_that_has_definitions_alone_is_found(library: Library) -> None:
    """No chunk of it has a vector."""
    root = library.root()
    for number in range(5):
        library.change(root, f"{number}.py", chunks=5)
    library.publish(root)
    library.change(root, "late.py", chunks=0, symbols=3)
    mapped = library.publish(root)
    library.check(root, mapped)
    assert len(mapped.outline(str(library.live[root.id]["late.py"].document)) or []) == 3
    assert mapped.outline(str(uuid4())) is None


def test_a_name_in_another_case_is_found_if_no_other_has_it(library: Library) -> None:
    root = library.root()
    library.change(root, "a.py", chunks=3)
    row = library.live[root.id]["a.py"]
    symbols = tuple(Symbol(name, name, "function", 1, 2) for name in ("Get", "get", "Größe"))
    made = ChunkedFile("b.py", "00" * 32, "python", (), symbols)
    named = SourceFile(path="b.py", sha256=made.sha256, run_id=row.run_id)
    library.lexical.add_symbols(library.store, [(named, made)])
    library.live[root.id]["b.py"] = named
    mapped = library.publish(root)

    def found(name: str) -> list[str]:
        return [symbol.name for symbol in mapped.definitions(name)]

    assert (found("get"), found("Get")) == (["get"], ["Get"])
    assert sorted(found("GET")) == ["Get", "get"]
    # Letters of other alphabets have to be equal, as in SQLite's NOCASE.
    assert (found("grÖße"), found("GRöße")) == ([], ["Größe"])


@pytest.mark.parametrize("library", range(3), indirect=True)
def test_a_part_of_what_a_run_reads_is_that_of_the_word_index_bit_by_bit(library: Library) -> None:
    root = library.root()
    library.apart = False
    for number in range(15):
        library.change(root, f"{number}.py")
    library.change(root, "large.py", chunks=300)
    (exported,) = library.publish(root).parts
    builder = PartBuilder()
    for row, symbols, stored in library.read:
        vectors = library.vectors(root.id, [each.id for each in stored])
        builder.add(row, symbols, stored, Codes.of(vectors))
    built = builder.part(root.id)
    assert (built.runs, built.files) == (exported.part.runs, exported.part.files)
    for group in ("codes", "words", "definitions", "facts", "columns"):
        arrays = getattr(built, group)._asdict()
        for name, array in getattr(exported.part, group)._asdict().items():
            assert (array.dtype, array.shape) == (arrays[name].dtype, arrays[name].shape), name
            assert array.tobytes() == arrays[name].tobytes(), name


@pytest.mark.parametrize("harm", ["content", "ends", "places"])
def test_a_damaged_part_is_an_error_and_no_answer(library: Library, harm: str) -> None:
    root = library.root()
    library.change(root, "a.py", chunks=5, symbols=100)
    mapped = library.publish(root)
    (live,) = mapped.parts
    definitions = live.part.definitions
    name = definitions.rows.read([0])[0][0]
    value = 1 << 20 if harm == "places" else 0
    broken = definitions._replace(**{harm: np.full_like(getattr(definitions, harm), value)})
    harmed = replace(live, part=replace(live.part, definitions=broken))
    with pytest.raises(files.Damaged):
        replace(mapped, parts=[harmed]).definitions(name)
