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
from apps.code.syntax.documents import document_outlines
from apps.code.syntax.keyword_lines import outline_by_words
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
BOMS = tuple(bom for bom, _ in ENCODINGS)


def decode(data: bytes, encoding: str = "") -> str:
    """The text of a file: in the encoding of its byte order mark, which is removed, else UTF-8.

    encoding: of bytes that are neither (`encodings.encoding_of`); "" for UTF-8

    Bytes that are not valid become U+FFFD, and so does NUL, which PostgreSQL cannot store in text.
    """
    for bom, marked in ENCODINGS:
        if data.startswith(bom):
            text = data[len(bom) :].decode(marked, "replace")
            break
    else:
        used = encoding if encoding and not is_utf8(data) else "utf-8"
        text = data.decode(used, "replace")
    return text.replace("\0", "\ufffd")


def digest_of(data: bytes, encoding: str = "") -> str:
    """The SHA-256 of a file in hex. That of a file in another encoding than UTF-8 begins with the
    encoding, as the same bytes have another text in another encoding."""
    return hashlib.sha256((f"{encoding}\0".encode() if encoding else b"") + data).hexdigest()


def is_utf8(data: bytes) -> bool:
    """Whether bytes are valid UTF-8 without NUL. UTF-16 has NULs; it may have ASCII bytes only."""
    try:
        return b"\0" not in data and (data.isascii() or bool(data.decode()))
    except UnicodeDecodeError:
        return False


def lines_of(text: str) -> list[str]:
    """The lines of a text. Lines end with "\\n" or "\\r\\n"; a lone "\\r" does not end a line.

    "a\\n" has one line, "" has none.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


@dataclass(frozen=True)
class DecodedFile:
    """A file before it is split."""

    path: str  # within the root
    sha256: str  # as of `digest_of`
    kind: FileType
    lines: list[str]
    encoding: str = ""  # as of `decode`

    @classmethod
    def of(cls, path: str, data: bytes, encoding: str = "") -> Self:
        """Decode a file and find its type."""
        digest, text = digest_of(data, encoding), decode(data, encoding)
        kind = language_of(path, text.encode() if encoding else data)
        return cls(path, digest, kind, lines_of(text), encoding)

    @property
    def grammar(self) -> str:
        return self.kind.grammar


def chunk_file(
    file: DecodedFile, cut: Cut | None, *, max_chars: int = MAX_CHARS, problem: str = ""
) -> ChunkedFile:
    """The chunks of a file, at most `max_chars` characters each, and its symbols.

    `cut` is the result of a parse; None: split by lines. `problem` says why it is None, or what it
    lacks.
    """
    if cut is None:
        outlines = document_outlines(file.lines, file.kind.name)
        if not (outlines or file.kind.prose):
            outlines = [outline_by_words(file.lines, file.kind.name)]
        cut = cut_by_lines(file.lines, max_chars, outlines)
    text = "\n".join(file.lines)
    starts = [0, *accumulate(len(line) + 1 for line in file.lines)]
    chunks = (c for piece in cut.pieces for c in _chunks(text, starts, piece, max_chars))
    # A selector of a stylesheet may name a class twice.
    declared = (Symbol(*declaration) for declaration in cut.declarations)
    symbols = tuple(dict.fromkeys([*_component(file), *declared]))
    name = file.kind.name
    return ChunkedFile(
        file.path, file.sha256, name, tuple(chunks), symbols, problem, text, file.encoding
    )


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
