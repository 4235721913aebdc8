"""What is known of a file of source code: its chunks and the definitions in it."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Chunk:
    """A piece of one file: whole lines, 1-based, both ends included; `text` is never blank.

    `text` equals the file's decoded lines start_line..end_line joined by newlines (or, for one line
    longer than a chunk may be, a part of that line). `symbol` is the path of the enclosing
    definitions ("Class.method"); `names` are the names declared inside; `signature` the first line
    or lines of the definition.
    """

    text: str
    start_line: int
    end_line: int
    symbol: str = ""
    names: tuple[str, ...] = ()
    signature: str = ""


@dataclass(frozen=True)
class Symbol:
    """A definition in a file. `path` is its name after those that enclose it ("Client.get"), `kind`
    a plain word ("function", "class", …); lines are 1-based, both included."""

    name: str
    path: str
    kind: str
    start_line: int
    end_line: int
    signature: str = ""


@dataclass(frozen=True)
class ChunkedFile:
    """One file's content hash (sha256 hex of its bytes), language name, chunks and definitions, and
    why these are not what a parse would give, if so."""

    path: str
    sha256: str
    language: str
    chunks: tuple[Chunk, ...]
    symbols: tuple[Symbol, ...] = ()
    # Not among what tells how files are cut, which is compared by its looks.
    problem: str = field(default="", repr=False)
