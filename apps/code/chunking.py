"""Decode the bytes of a file and split its lines into chunks.

Chunks, citations and the source viewer all number lines by `lines_of`.
"""

import codecs
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

from apps.code.languages import FileType, language_of
from apps.code.syntax.pieces import Cut, Piece, cut_by_lines
from apps.code.values import Chunk, ChunkedFile, Symbol

# Characters of a chunk.
MAX_CHARS = 1_500

# UTF-32 precedes UTF-16, since its little-endian byte order mark begins with that of UTF-16.
ENCODINGS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode(data: bytes) -> str:
    """The text of a file: in the encoding of its byte order mark, which is removed, else UTF-8.

    Bytes that are not valid become U+FFFD, and so does NUL, which PostgreSQL cannot store in text.
    """
    for bom, encoding in ENCODINGS:
        if data.startswith(bom):
            text = data[len(bom) :].decode(encoding, "replace")
            break
    else:
        text = data.decode("utf-8", "replace")
    return text.replace("\0", "\ufffd")


def lines_of(text: str) -> list[str]:
    """The lines of a text. Lines end with "\\n" or "\\r\\n"; a lone "\\r" does not end a line.

    "a\\n" has one line, "" has none.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


@dataclass(frozen=True)
class DecodedFile:
    """A file before it is split."""

    path: str  # within the root
    sha256: str  # of its bytes, hex
    kind: FileType
    lines: list[str]

    @classmethod
    def of(cls, path: str, data: bytes) -> Self:
        """Decode a file and find its type."""
        digest = hashlib.sha256(data).hexdigest()
        return cls(path, digest, language_of(path, data), lines_of(decode(data)))

    @property
    def grammar(self) -> str:
        return self.kind.grammar


def chunk_file(
    file: DecodedFile, cut: Cut | None, *, max_chars: int = MAX_CHARS, problem: str = ""
) -> ChunkedFile:
    """The chunks of a file, at most `max_chars` characters each, and its symbols.

    `cut` is the result of a parse; None: split by lines. `problem` says why it is None.
    """
    if cut is None:
        cut = cut_by_lines(file.lines, max_chars, declarations=not file.kind.prose)
    text = "\n".join(file.lines)
    starts = [0, *accumulate(len(line) + 1 for line in file.lines)]
    chunks = (c for piece in cut.pieces for c in _chunks(text, starts, piece, max_chars))
    # A selector of a stylesheet may name a class twice.
    declared = (Symbol(*declaration) for declaration in cut.declarations)
    symbols = tuple(dict.fromkeys([*_component(file), *declared]))
    name = file.kind.name
    return ChunkedFile(file.path, file.sha256, name, tuple(chunks), symbols, problem, text)


def _component(file: DecodedFile) -> Iterator[Symbol]:
    """The component that a file defines by its name: `Cart` in Cart.vue."""
    name = file.path.rpartition("/")[2].partition(".")[0]
    if file.kind.component and file.lines and name:
        yield Symbol(name, name, "component", 1, len(file.lines))


def _chunks(text: str, starts: Sequence[int], piece: Piece, max_chars: int) -> Iterator[Chunk]:
    """The chunk of a piece; several chunks of one line that is longer than a chunk may be.

    starts: offset of each line in `text`, and that of the line after the last
    """
    start, end, symbol, names, signature = piece
    for at in range(starts[start - 1], starts[end] - 1, max_chars):
        part = text[at : min(at + max_chars, starts[end] - 1)]
        if part.strip():
            yield Chunk(part, start, end, symbol, names, signature, at)
            names = ()
