"""Values of parsed source files: chunks, symbols, and the file with both."""

from dataclasses import dataclass, field


def words(text: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(text.split())


@dataclass(frozen=True)
class Chunk:
    """Consecutive lines of a file, or a part of one line that is longer than a chunk may be."""

    text: str  # the decoded lines, joined by newlines; never blank
    start_line: int  # 1-based
    end_line: int  # 1-based, included
    symbol: str = ""  # path of the definition that it belongs to: "Class.method"
    names: tuple[str, ...] = ()  # declared inside
    signature: str = ""  # of that definition: the text before its body, on one line
    offset: int = 0  # characters of the file's text before it


@dataclass(frozen=True)
class Symbol:
    """A definition in a file."""

    name: str
    path: str  # the name, qualified by the definitions that enclose it: "Client.get"
    kind: str  # "function", "class", …
    start_line: int  # 1-based
    end_line: int  # 1-based, included
    signature: str = ""  # the text before its body, on one line


@dataclass(frozen=True)
class ChunkedFile:
    """A file with its chunks and definitions."""

    path: str  # within the root
    sha256: str  # of its bytes, hex (`chunking.digest_of`)
    language: str  # FileType.name
    chunks: tuple[Chunk, ...]  # in the order of their lines
    symbols: tuple[Symbol, ...] = ()
    # Why the file was split without its syntax tree, or what that lacks. The repr has only the
    # result.
    problem: str = field(default="", repr=False)
    # All lines, joined by newlines: each chunk is a part of it.
    text: str = field(default="", repr=False)
    encoding: str = ""  # "": UTF-8, or that of the byte order mark
