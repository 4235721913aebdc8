"""Read Jupyter notebooks (nbformat 2 to 4) as text: the sources of their cells, without outputs.

Programs write a notebook with each line of a source on a line of its own. Its text has the same
lines: a source is decoded where it is, the line before it is the cell's mark (`cells`), and the
rest is blank. In a notebook that is written otherwise, as one long line or with whole sources in
one string, sources have no lines of their own: its text has nothing but marks and sources, and the
marks name the lines of the file.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.code.cells import MARKDOWN, RAW, SIGN, head, mark
from apps.code.languages import BY_NAME, extension_of, known_type

# Larger files are not read.
MAX_NOTEBOOK_BYTES = 32_000_000
# Brackets and quotes of one that is read: about a second.
MAX_TOKENS = 4_000_000
# Characters of a value that is decoded, such as the metadata.
MAX_VALUE = 100_000
EXTENSION = "ipynb"
DEFAULT_LANGUAGE, UNKNOWN_LANGUAGE = "python", "text"
# Names of kernels, magics and cells that are neither names of types nor extensions.
_ALIASES = {
    "c#": "csharp", "f#": "fsharp", "c++": "cpp", "sagemath": "python", "pyspark": "python",
    "ipython": "python", "node": "javascript", "shell": "bash", "script": "bash", "pwsh":
    "powershell", "bigquery": "sql", "latex": "tex", "svg": "xml", "octave": "matlab",
}  # fmt: skip
_PROSE = {"markdown": MARKDOWN, "md": MARKDOWN}
# The language of a cell: `%%bash`, `#!fsharp`, and `%sql` of Databricks on a line of its own.
_MAGIC = re.compile(r"\s*(?:(?:%%|#!)(\w+)|%(md|sql|scala|r|sh|python)[ \t]*(?:\n|\Z))")
_SPACE = re.compile(r"[ \t\r\n]*")
_NO_TEXT = re.compile(f"[\0\ud800-\udfff{SIGN}]")
_TOKEN, _NESTING = re.compile(r'[\[\]{},"]'), re.compile(r'[\[\]{}"]')
_decoder = json.JSONDecoder()


def is_notebook_path(path: str) -> bool:
    return extension_of(path) == EXTENSION


def notebook_text(data: bytes) -> str | None:
    """The text of a notebook; None if `data` is none, or has no cells."""
    try:
        text = data.decode("utf-8-sig")
        book = _read(_Scanner(text))
    except (ValueError, RecursionError, MemoryError):
        return None
    if not book.cells:
        return None
    language = book.language
    for cell in book.cells:
        cell.kind = _kind(cell, language)
    count = text.count("\n") + (not text.endswith("\n"))
    lines = _in_place(book.cells, language, count) or _packed(book.cells, language, count)
    return "\n".join(lines) + "\n"


@dataclass
class _Cell:
    row: int  # of its source, in the file
    facts: dict[str, Any] = field(default_factory=dict)  # the members that tell its kind
    lines: list[tuple[int, str]] = field(default_factory=list)  # row in the file, decoded string
    kind: str = ""


@dataclass
class _Notebook:
    cells: list[_Cell] = field(default_factory=list)
    metadata: Any = None

    @property
    def language(self) -> str:
        """The name of the type of its code; UNKNOWN_LANGUAGE for one without a type."""
        facts = self.metadata if isinstance(self.metadata, dict) else {}
        info, kernel = (_members(facts, name) for name in ("language_info", "kernelspec"))
        names = [
            str(info.get("file_extension") or "").lstrip("."),
            *(info.get("name"), kernel.get("language"), facts.get("language"), kernel.get("name")),
        ]
        known = [name for name in names if name]
        found = next((kind for name in known if (kind := _language(name))), "")
        return found or (UNKNOWN_LANGUAGE if known else DEFAULT_LANGUAGE)


def _members(facts: dict[str, Any], name: str) -> dict[str, Any]:
    value = facts.get(name)
    return value if isinstance(value, dict) else {}


def _language(name: object) -> str:
    """The name of the type that a kernel or a magic names; "" if it is unknown."""
    word = str(name).lower()
    word = _ALIASES.get(word, word)
    for spelling in dict.fromkeys((word, word.rstrip("0123456789.-"))):
        if spelling in BY_NAME:
            return spelling
        if kind := known_type(f"_.{spelling}"):
            return kind.name
    return ""


def _kind(cell: _Cell, language: str) -> str:
    """The kind of a cell, as `cells.Cell` has it."""
    kind = cell.facts.get("cell_type")
    if kind != "code":
        return MARKDOWN if kind in ("markdown", "heading") else RAW
    facts = _members(cell.facts, "metadata")
    names = [
        _members(facts, "vscode").get("languageId"),
        _members(facts, "dotnet_interactive").get("language"),
        _members(facts, "polyglot_notebook").get("kernelName"),
    ]
    match = _MAGIC.match("".join(source for _, source in cell.lines))
    names += [match[1] or match[2]] if match else []
    for name in names:
        found = _PROSE.get(str(name).lower()) or (name and _language(name))
        if found and found != language:
            return str(found)
    return ""


# --- text -----------------------------------------------------------------------------------------


def _in_place(cells: Sequence[_Cell], language: str, count: int) -> list[str] | None:
    """The lines of a notebook that has a line for each line of a source; None if it has not.

    count: lines of the file
    """
    lines = [head(language), *[""] * (count - 1)]
    free = 1  # the first row that may be used
    for number, cell in enumerate(cells, 1):
        at = cell.lines[0][0] - 1 if cell.lines else cell.row
        if at < free:
            return None
        lines[at], free = mark(number, cell.kind), at + 1
        for row, source in cell.lines:
            line = source.removesuffix("\n").removesuffix("\r")
            if row < free or "\n" in line:
                return None
            lines[row], free = _clean(line), row + 1
    return lines


def _packed(cells: Sequence[_Cell], language: str, count: int) -> list[str]:
    lines = [head(language, count)]
    for number, cell in enumerate(cells, 1):
        rows = [row for row, _ in cell.lines] or [cell.row]
        lines.append(mark(number, cell.kind, (rows[0] + 1, rows[-1] + 1)))
        source = _clean("".join(source for _, source in cell.lines)).removesuffix("\n")
        lines += [line.removesuffix("\r") for line in source.split("\n")]
    return lines


def _clean(source: str) -> str:
    return _NO_TEXT.sub("\ufffd", source)


# --- JSON -----------------------------------------------------------------------------------------


def _read(scanner: "_Scanner") -> _Notebook:
    """Raises ValueError if it is no notebook."""
    book = _Notebook()
    for key in scanner.members():
        if key == "cells":
            book.cells += _cells(scanner)
        elif key == "worksheets":
            for _ in scanner.elements():
                for inner in scanner.members():
                    book.cells += _cells(scanner) if inner == "cells" else scanner.skip()
        elif key == "metadata":
            book.metadata = scanner.value()
        else:
            scanner.skip()
    scanner.check_end()
    return book


def _cells(scanner: "_Scanner") -> Iterator[_Cell]:
    for _ in scanner.elements():
        cell = _Cell(scanner.row)
        for key in scanner.members():
            if key in ("source", "input"):
                cell.row, cell.lines = scanner.row, list(scanner.strings())
            elif key in ("cell_type", "metadata", "level"):
                cell.facts[key] = scanner.value()
            else:
                scanner.skip()
        level = cell.facts.get("level")
        if cell.facts.get("cell_type") == "heading" and cell.lines and isinstance(level, int):
            row, source = cell.lines[0]
            cell.lines[0] = row, f"{'#' * max(1, min(level, 6))} {source}"
        yield cell


class _Scanner:
    """Reads JSON from the beginning to the end. Raises ValueError if what it decodes is malformed.

    Values are left to a reader who needs the positions of their strings, decoded by the library if
    they are short, or skipped, which takes no memory.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0  # offset of the next value
        self._counted = self._row = 0  # offset to which line breaks are counted, and how many
        self._left = MAX_TOKENS

    @property
    def row(self) -> int:
        """The row of the next value."""
        self._row += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._row

    def _next(self) -> str:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def value(self) -> Any:
        """The next value; None for one that is longer than MAX_VALUE."""
        self._next()
        start = self.at
        self.skip()
        if self.at - start > MAX_VALUE:
            return None
        return json.loads(self.text[start : self.at])

    def string(self) -> str:
        """The next value. Raises ValueError if it is no string."""
        value, self.at = _decoder.raw_decode(self.text, self.at)
        if not isinstance(value, str):
            raise ValueError("no string")
        return value

    def skip(self) -> tuple[()]:
        """Go to the end of a value. What is inside is not checked."""
        depth = 0
        while True:
            match = (_NESTING if depth else _TOKEN).search(self.text, self.at)
            if match is None:
                raise ValueError("a value does not end")
            self._left -= 1
            if self._left < 0:
                raise ValueError("too many values")
            token = match[0]
            if depth == 0 and token in ",]}":
                self.at = match.start()
                return ()
            self.at = match.end()
            if token == '"':
                self._skip_string()
            depth += (token in "[{") - (token in "]}")
            if depth == 0 and token in ']}"':
                return ()

    def _skip_string(self) -> None:
        while True:
            end = self.text.find('"', self.at)
            self._left -= 1
            if end < 0 or self._left < 0:
                raise ValueError("a string does not end")
            slashes = end
            while slashes > self.at and self.text[slashes - 1] == "\\":
                slashes -= 1
            self.at = end + 1
            if (end - slashes) % 2 == 0:
                return

    def members(self) -> Iterator[str]:
        """Yield each key of an object. The reader takes the value before the next one."""
        for _ in self._parts("{", "}"):
            key = self.string()
            if self._next() != ":":
                raise ValueError("no member of an object")
            self.at += 1
            self._next()
            yield key

    def elements(self) -> Iterator[None]:
        """Yield before each value of an array. The reader takes it."""
        yield from self._parts("[", "]")

    def strings(self) -> Iterator[tuple[int, str]]:
        """Yield row and value of each string in an array; or of one string."""
        if self._next() != "[":
            if self.text.startswith("null", self.at):
                self.skip()
            else:
                yield self.row, self.string()
            return
        for _ in self.elements():
            yield self.row, self.string()

    def check_end(self) -> None:
        if self._next():
            raise ValueError("text after the end")

    def _parts(self, opening: str, closing: str) -> Iterator[None]:
        if self._next() != opening:
            raise ValueError(f"no {opening}")
        self.at += 1
        if self._next() == closing:
            self.at += 1
            return
        while True:
            self._next()
            yield
            end = self._next()
            self.at += 1
            if end == closing:
                return
            if end != ",":
                raise ValueError(f"no {closing}")
