"""The outlines of documents, from their lines: headings, operations of OpenAPI, tables of SQL.

They are found without a grammar, in time linear in the size of the file. The parent of the parse
process imports this module too.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from apps.code.cells import MARKDOWN, cells_of, notebook_language
from apps.code.syntax.openapi import block_of, of_openapi
from apps.code.syntax.pieces import MAX_DECLARATIONS, Declaration, Definition, Outline

HEADING = "heading"
MAX_TITLE = 120
# Longer lines are no headings.
MAX_LINE = 400


class Heading(NamedTuple):
    """The title of a section."""

    row: int  # 0-based
    level: int  # a section ends before the next heading of its level or a lower one
    title: str


def document_outlines(lines: Sequence[str], name: str) -> list[Outline]:
    """The outlines of a file besides that of its syntax tree; none of most.

    name: of its type or its grammar
    """
    if cells := cells_of(lines):
        rows = [range(cell.first, cell.end) for cell in cells if cell.kind == MARKDOWN]
        tables = [
            block._replace(first=block.first + cell.first, last=block.last + cell.first)
            for cell in cells
            if (cell.kind or notebook_language(lines[0])) == "sql"
            for block in _of_sql(lines[cell.first : cell.end])
        ]
        return [sections(_of_markdown(lines, rows), len(lines)), _flat(tables[:MAX_DECLARATIONS])]
    if headings := HEADINGS.get(name):
        return [sections(headings(lines), len(lines))]
    blocks = list(BLOCKS[name](lines))[:MAX_DECLARATIONS] if name in BLOCKS else []
    return [_flat(blocks)] if blocks else []


def sections(headings: Iterable[Heading], count: int) -> Outline:
    """The outline of a text of `count` lines: each heading begins a section."""
    outline = Outline(separator=" > ")
    found = outline.definitions
    stack: list[tuple[int, int]] = []  # level and index of the open sections
    for row, level, text in islice(headings, MAX_DECLARATIONS):
        while stack and stack[-1][0] >= level:
            index = stack.pop()[1]
            found[index] = found[index]._replace(last=row - 1)
        parent, title = stack[-1][1] if stack else -1, text[:MAX_TITLE]
        stack.append((level, len(found)))
        found.append(Definition(title, HEADING, row, count - 1, parent, title))
    for index, (_, _, first, last, _, title) in enumerate(found):
        path = outline.path(index)
        outline.names.append((first, title))
        outline.declarations.append(Declaration(title, path, HEADING, first + 1, last + 1, title))
    return outline


def _flat(blocks: list[Definition]) -> Outline:
    """The outline of parts that have no other parts."""
    return Outline(
        blocks,
        [(block.first, block.label) for block in blocks],
        [
            Declaration(name, name, kind, first + 1, last + 1, name)
            for name, kind, first, last, _, _ in blocks
        ],
    )


# --- headings -------------------------------------------------------------------------------------

_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
CLOSING = re.compile(r"(?:\A|[ \t])#+\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*\Z")


def _of_markdown(lines: Sequence[str], parts: Iterable[range]) -> Iterator[Heading]:
    """The headings in these ranges of rows, outside of code. A range does not continue another."""
    for rows in parts:
        fence, text = "", ""
        for row in rows:
            line = lines[row][:MAX_LINE]
            opening = _FENCE.match(line)
            if fence:
                is_end = opening and opening[1].startswith(fence) and not line.strip(" `~\t")
                fence = "" if is_end else fence
            elif opening:
                fence, text = opening[1], ""
            elif atx := _ATX.match(line):
                title, text = CLOSING.sub("", atx[2].rstrip()).rstrip(), ""
                if title:
                    yield Heading(row, len(atx[1]), title)
            elif (underline := _UNDERLINE.match(line)) and text:
                yield Heading(row - 1, 1 if underline[1][0] == "=" else 2, text)
                text = ""
            else:
                text = line.strip()


_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+[ \t]*\Z")
# Shorter underlines must be as long as their titles.
_SURE = 4


def _of_rst(lines: Sequence[str]) -> Iterator[Heading]:
    """A title has a line of punctuation below it, and one above it or not. Levels are the kinds of
    these lines, in the order of their appearance."""
    levels: dict[tuple[str, bool], int] = {}
    last = -1  # row of the underline before
    for row, (line, below) in enumerate(pairwise(lines)):
        adornment = _ADORNMENT.match(below[:MAX_LINE])
        title = line[:MAX_LINE].strip()
        if not adornment or not title or row <= last or _ADORNMENT.match(line[:MAX_LINE]):
            continue
        above = lines[row - 1][:MAX_LINE].rstrip() if row - 1 > last else ""
        is_framed = above == below.rstrip() and bool(above)
        size = len(below.strip())
        if (size >= len(title) or size >= _SURE) and (is_framed or not line[:1].isspace()):
            level = levels.setdefault((adornment[1], is_framed), len(levels) + 1)
            last = row + 1
            yield Heading(row, level, title)


_ADOC = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)")
_DELIMITER = re.compile(r"(-{4,}|\.{4,}|={4,}|\+{4,}|_{4,}|\*{4,}|/{4,}|`{3,})[ \t]*\Z")


def _of_asciidoc(lines: Sequence[str]) -> Iterator[Heading]:
    """The headings outside of blocks between two equal lines."""
    block = ""
    for row, whole in enumerate(lines):
        line = whole[:MAX_LINE]
        if delimiter := _DELIMITER.match(line):
            block = delimiter[1] if not block else "" if block == delimiter[1] else block
        elif not block and (heading := _ADOC.match(line)):
            title = heading[2].rstrip().removesuffix(heading[1]).rstrip()
            yield Heading(row, len(heading[1]), title)


# Comments, scripts and styles have no headings.
_SKIPPED = re.compile(r"<!--|<(script|style|template)\b", re.IGNORECASE)
_HTML = re.compile(r"<(h[1-6]|title)\b[^<>]{0,1000}>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]{0,1000}>")
MAX_INNER = 2_000  # characters between the tags of a heading


def _of_html(lines: Sequence[str]) -> Iterator[Heading]:
    """`<title>` and `<h1>` to `<h6>`."""
    text = _without_scripts("\n".join(lines))
    lower = _lower(text)
    row = counted = 0
    for match in _HTML.finditer(text):
        tag = match[1].lower()
        end = lower.find(f"</{tag}", match.end(), match.end() + MAX_INNER)
        inner = _TAG.sub("", text[match.end() : end]) if end >= 0 else ""
        if title := " ".join(html.unescape(inner).split()):
            row += text.count("\n", counted, match.start())
            counted = match.start()
            yield Heading(row, 0 if tag == "title" else int(tag[1]), title)


def _lower(text: str) -> str:
    """The text in small letters, as long as it was: only `İ` becomes two characters."""
    return text.replace("\u0130", "I").lower()


def _without_scripts(text: str) -> str:
    """The text with as many lines."""
    parts: list[str] = []
    at, lower = 0, _lower(text)
    while match := _SKIPPED.search(text, at):
        closing = f"</{match[1].lower()}" if match[1] else "-->"
        end = lower.find(closing, match.end())
        end = len(text) if end < 0 else end + len(closing)
        parts += [text[at : match.start()], "\n" * text.count("\n", match.start(), end)]
        at = end
    return "".join([*parts, text[at:]])


HEADINGS: Mapping[str, Callable[[Sequence[str]], Iterator[Heading]]] = {
    "restructuredtext": _of_rst,
    "asciidoc": _of_asciidoc,
    "html": _of_html,
}

# --- SQL ------------------------------------------------------------------------------------------

_CREATE = re.compile(
    r"\s*create\s+(?:or\s+(?:replace|alter)\s+)?"
    r"(?:(?:temp|temporary|global|local|unlogged|materialized|recursive|unique|external|foreign"
    r"|virtual|transient|secure|clustered|nonclustered|aggregate|constraint)\s+){0,4}"
    r"(table|view|function|procedure|proc|trigger|type|index|sequence|schema|domain|package)\s+"
    r"(?:body\s+)?(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?"
    r"((?:[\w$]+|\"[^\"]+\"|`[^`]+`|\[[^\]]+\])(?:\.(?:[\w$]+|\"[^\"]+\"|`[^`]+`|\[[^\]]+\])){0,3})",
    re.IGNORECASE,
)
_KINDS = {"proc": "procedure"}
_ROUTINES = frozenset({"function", "procedure", "trigger", "package"})
_DOLLARS = re.compile(r"\$\w*\$")
_NEXT = re.compile(
    r"(?:create|alter|insert|comment|grant|revoke|drop|go\b|delimiter|/\s*\Z|--)",
    re.IGNORECASE,
)


def _of_sql(lines: Sequence[str]) -> Iterator[Definition]:
    """What `CREATE` statements define. `public."order"` is `order`."""
    row = 0
    while row < len(lines):
        statement = lines[row][:MAX_LINE]
        match = _CREATE.match(statement)
        if match is None and re.match(r"\s*create\b", statement, re.IGNORECASE):
            statement = "\n".join(line[:MAX_LINE] for line in lines[row : row + 3])
            match = _CREATE.match(statement)
        if match is None:
            row += 1
            continue
        kind = match[1].lower()
        name = _last_part(match[2])
        last = _end_of_statement(lines, row, is_routine=kind in _ROUTINES)
        yield block_of(name, _KINDS.get(kind, kind), row, last)
        row = last + 1


def _last_part(name: str) -> str:
    """The name without its schema and quotes."""
    if name[-1] in '"`]':
        return name[name.rfind("[" if name[-1] == "]" else name[-1], 0, -1) + 1 : -1]
    return name.rpartition(".")[2]


def _end_of_statement(lines: Sequence[str], first: int, *, is_routine: bool) -> int:
    """The last row of a statement: that with a semicolon at its end, outside of `$$ … $$`. A
    routine may have others inside: it ends before the next statement that is not indented."""
    quote = ""
    has_body = False
    last = first
    for row in range(first, len(lines)):
        line = lines[row][: 10 * MAX_LINE]
        if row > first and not quote and _NEXT.match(line):
            return last
        for mark in _DOLLARS.findall(line):
            quote = mark if not quote else "" if mark == quote else quote
            has_body = True
        if line.strip():
            last = row
        code = line.partition("--")[0].rstrip()
        if code.endswith(";") and not quote and (has_body or not is_routine):
            return row
    return last


BLOCKS: Mapping[str, Callable[[Sequence[str]], Iterator[Definition]]] = {
    "yaml": of_openapi,
    "json": of_openapi,
    "sql": _of_sql,
}
