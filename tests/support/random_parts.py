"""Files with random chunks and definitions, and the parts that a run makes of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from uuid import UUID

import numpy as np

from apps.code.values import Chunk, Symbol
from apps.index.chunk_ids import chunk_id
from apps.index.mapped.codes import Codes
from apps.index.mapped.live_files import LiveFiles
from apps.index.mapped.part import Part
from apps.index.mapped.part_builder import PartBuilder, ReadFile
from apps.index.models import SourceFile
from apps.index.types import ChunkRecord
from tests.support.mapped import unit_vectors

DIMENSION = 8
STORE = UUID(int=1)
NAMES = ("a", "A", "_b", "é", "ß1", "\ud800", "get", "Get", "\U0001f600")
TEXT_WORDS = ("alpha", "Beta", "gamma_ray", "größe", "x1")
RUNS = tuple(UUID(int=number) for number in range(1, 4))


@dataclass(frozen=True)
class Source:
    """A file, or the rest of one, as a run reads it."""

    row: SourceFile
    symbols: tuple[Symbol, ...]
    chunks: list[ChunkRecord]
    codes: Codes

    @property
    def read(self) -> ReadFile:
        return ReadFile(self.row, self.symbols, self.chunks)

    @property
    def is_in_parts(self) -> bool:
        return bool(self.chunks or self.symbols)


@dataclass
class Sources:
    """Makes random files."""

    random: Random
    made: Iterator[int] = field(default_factory=count)

    def source(self, chunks: int, symbols: int) -> Source:
        number, random = next(self.made), self.random
        path = f"{random.choice(NAMES)}/{number}.py"
        sha256 = f"{random.getrandbits(256):064x}"
        row = SourceFile(
            document=UUID(int=1_000 + number),
            path=path,
            language=random.choice(("python", "go", "")),
            sha256=sha256,
            run_id=random.choice(RUNS),
        )
        records = [
            ChunkRecord(
                chunk_id(row.document, index),
                str(row.document),
                str(row.run_id),
                path,
                row.language,
                sha256,
                index,
                self._chunk(index),
            )
            for index in range(random.choice((0, 0, 1)), chunks)
        ]
        named = tuple(self._symbol() for _ in range(symbols))
        codes = Codes.of(unit_vectors(len(records), DIMENSION, number))
        return Source(row, named, records, codes)

    def _chunk(self, index: int) -> Chunk:
        random = self.random
        text = " ".join(random.choice(TEXT_WORDS) for _ in range(random.choice((1, 4, 40))))
        names = tuple(random.choices(NAMES, k=random.randint(0, 2)))
        symbol, signature = random.choice((("", ""), ("A.b", "def b(self, é):")))
        return Chunk(text, index + 1, index + 3, symbol, names, signature, 10 * index)

    def _symbol(self) -> Symbol:
        name, line = self.random.choice(NAMES), self.random.randint(1, 9)
        return Symbol(name, f"Outer.{name}", "function", line, line + 2, f"def {name}():")


def built(sources: Sequence[Source]) -> Part:
    builder = PartBuilder()
    for source in sources:
        builder.add([source.read], source.codes)
    return builder.part(STORE)


def piece(sources: Sequence[Source], live: Sequence[bool]) -> LiveFiles:
    part = built(sources)
    pairs = zip(sources, live, strict=True)
    alive = {str(source.row.document) for source, is_live in pairs if is_live}
    return LiveFiles(part, np.array([file.source_file in alive for file in part.files], np.bool_))


def whole(part: Part) -> LiveFiles:
    return LiveFiles(part, np.ones(len(part.files), np.bool_))
