"""From the bytes of a file to its chunks: what counts as a line, and which lines a chunk has.

Chunks, citations and the source viewer all number lines by `lines_of`.
"""

import codecs
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from apps.code.languages import FileType, language_of
from apps.code.syntax.pieces import Cut, Piece, cut_by_lines
from apps.code.values import Chunk, ChunkedFile, Symbol

MAX_CHARS = 1_500

# UTF-32 first: its little-endian mark begins with that of UTF-16.
ENCODINGS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode(data: bytes) -> str:
    """The text of a file: by its byte order mark, which is dropped, else UTF-8.

    What cannot be decoded becomes U+FFFD, and so does NUL, which no database keeps in a text.
    """
    for mark, encoding in ENCODINGS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(encoding, "replace")
            break
    else:
        text = data.decode("utf-8", "replace")
    return text.replace("\0", "\ufffd")


def lines_of(text: str) -> list[str]:
    """The lines of a text: ended by "\\n" alone, a "\\r" before it dropped.

    The end of the last line begins no further one: "a\\n" is one line, "" none.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


@dataclass(frozen=True)
class DecodedFile:
    """A file's lines, its type and the hash of its bytes (sha256, hex)."""

    path: str
    sha256: str
    kind: FileType
    lines: list[str]

    @classmethod
    def of(cls, path: str, data: bytes) -> Self:
        digest = hashlib.sha256(data).hexdigest()
        return cls(path, digest, language_of(path, data), lines_of(decode(data)))

    @property
    def grammar(self) -> str:
        return self.kind.grammar


def chunk_file(
    file: DecodedFile, cut: Cut | None, *, max_chars: int = MAX_CHARS, problem: str = ""
) -> ChunkedFile:
    """A file as the pieces of `cut`, each at most `max_chars` characters; by lines where that is
    None."""
    if cut is None:
        cut = cut_by_lines(file.lines, max_chars, declarations=not file.kind.prose)
    chunks = (c for piece in cut.pieces for c in _chunks(file.lines, piece, max_chars))
    symbols = tuple(Symbol(*declaration) for declaration in cut.declarations)
    return ChunkedFile(file.path, file.sha256, file.kind.name, tuple(chunks), symbols, problem)


def _chunks(lines: Sequence[str], piece: Piece, max_chars: int) -> Iterator[Chunk]:
    """The chunk of a piece; several where it is one line longer than a chunk may be."""
    text = "\n".join(lines[piece.start - 1 : piece.end])
    names = piece.names
    for at in range(0, len(text), max_chars):
        part = text[at : at + max_chars]
        if part.strip():
            yield Chunk(part, piece.start, piece.end, piece.symbol, names, piece.signature)
            names = ()
