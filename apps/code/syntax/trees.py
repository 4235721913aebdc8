"""Split a text along its syntax tree: nodes that are too long are split at their children.

Nothing is recursive, so the depth of the tree is not limited.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import NamedTuple, Self

from tree_sitter import Node

from apps.code.cells import Cell, cells_of
from apps.code.syntax.code import Code, parse_all
from apps.code.syntax.cut import TextLines, Unit, cut_lines
from apps.code.syntax.declared import declarations
from apps.code.syntax.documents import document_outlines
from apps.code.syntax.outline import captures_of, is_script, key_of, outline
from apps.code.syntax.pieces import Cut, Outline, cut_of
from apps.code.syntax.queries import LEADING, LEADING_WORDS
from apps.code.syntax.unread import unread_percent


class _Outlined(NamedTuple):
    """Code with its definitions."""

    code: Code
    outline: Outline
    starts: list[int]  # the sorted rows where definitions begin

    @classmethod
    def of(cls, code: Code) -> Self:
        captures = captures_of(code)
        found = outline(code, captures)
        found.declarations.extend(declarations(code, captures, found))
        return cls(code, found, [definition.first for definition in found.definitions])

    @property
    def leading(self) -> Callable[[Node], bool]:
        return partial(_leads, self.code.grammar)


def cut_along_tree(lines: Sequence[str], max_chars: int, grammar: str) -> Cut:
    """The pieces and declarations of a file, by its syntax tree. May never return."""
    codes = {kind: _Outlined.of(code) for kind, code in parse_all(lines, grammar).items()}
    text, main = TextLines(lines, max_chars), codes[""]
    if cells := cells_of(lines):
        parts = [_cut_cell(text, cell, codes.get(cell.kind)) for cell in cells]
    else:
        parts = [cut_tree(text, _top(main.code), main.starts, main.leading)]
    outlines = [outlined.outline for outlined in codes.values()]
    cut = cut_of(text, parts, [*outlines, *document_outlines(lines, grammar)])
    return cut._replace(unread=unread_percent(main.code.page or main.code.root))


def _cut_cell(text: TextLines, cell: Cell, outlined: _Outlined | None) -> list[Unit]:
    """The units of a cell of a notebook. No unit has lines of two cells."""
    if outlined is None:
        return cut_lines(text, cell.first, cell.end)
    children = outlined.code.root.children
    begin = bisect_left(children, cell.first, key=_row)
    top = _Top(children[begin : bisect_left(children, cell.end, lo=begin, key=_row)])
    return cut_tree(text, top, outlined.starts, outlined.leading, (cell.first, cell.end))


def _row(node: Node) -> int:
    return node.start_point.row


class _Top(NamedTuple):
    """A root with these children."""

    children: list[Node]


def _top(code: Code) -> _Top:
    """The nodes at which a file is split first: of a page its elements, and the statements of its
    scripts."""
    if code.wrapper:
        # Without `class`, whose place is in the page.
        return _Top([part for node in code.root.children for part in node.children[1:]])
    if code.page is None:
        return _Top(code.root.children)
    nodes = [node for node in code.root.children if is_script(code, node)]
    for element in code.page.children:
        at = bisect_left(code.scripts, (element.start_byte, 0))
        holds_script = at < len(code.scripts) and code.scripts[at][0] < element.end_byte
        parts = element.children if holds_script else [element]
        nodes += [part for part in parts if not is_script(code, part)]
    return _Top(sorted(nodes, key=key_of))


def _leads(grammar: str, node: Node) -> bool:
    return _is_leading(grammar, node.type)


@cache
def _is_leading(grammar: str, kind: str) -> bool:
    return kind in LEADING.get(grammar, ()) or any(word in kind for word in LEADING_WORDS)


class _Task(NamedTuple):
    """A range of rows to split. The first four fields are those of Unit."""

    first: int
    end: int
    level: int
    room: int
    nodes: tuple[Node | _Top, ...]  # that begin in the range


def cut_tree(
    text: TextLines,
    top: Node | _Top,
    starts: Sequence[int],
    leading: Callable[[Node], bool],
    rows: tuple[int, int] | None = None,
) -> list[Unit]:
    """The units of a parsed file, or of these rows (0-based, the end not included).

    `starts` are the sorted rows where definitions begin. `leading` returns True for a node that
    belongs to the next node, such as a comment.
    """
    units: list[Unit] = []
    tasks = [_Task(*(rows or (0, len(text.lines))), 0, text.max_chars, (top,))]
    while tasks:
        task = tasks.pop()
        if text.fits(task.first, task.end) or task.end - task.first <= 1:
            at = bisect_left(starts, task.first)
            defines = at < len(starts) and starts[at] < task.end
            units.append(Unit(task.first, task.end, task.level, task.room, defines))
            continue
        parts = _cut(text, task, leading)
        if parts:
            tasks.extend(reversed(parts))
        else:
            units.extend(cut_lines(text, task.first, task.end, task.level, task.room))
    return units


class _Span(NamedTuple):
    """A node and its rows, both included. A line break at its end is not a row."""

    first: int
    last: int
    node: Node


def _span(node: Node) -> _Span:
    first, end = node.start_point.row, node.end_point
    return _Span(first, end.row - (end.column == 0 and end.row > first), node)


def _cut(text: TextLines, task: _Task, leading: Callable[[Node], bool]) -> list[_Task]:
    """The parts of a range, split where children of its nodes begin; [] if it has none."""
    nodes: Sequence[Node | _Top] = task.nodes
    while nodes:
        spans = [_span(child) for node in nodes for child in node.children]
        rows = _cut_rows(spans, task.first, task.end, leading)
        # A node on one row cannot be split.
        spans = [span for span in spans if span.last > span.first]
        if rows:
            return _parts(text, task, spans, rows)
        nodes = [span.node for span in spans]
    return []


def _cut_rows(
    spans: Iterable[_Span], first: int, end: int, leading: Callable[[Node], bool]
) -> list[int]:
    """Rows strictly inside first..end where a node begins, its leading nodes included."""
    rows: list[int] = []
    leading_from, previous_last = -1, -1
    for span in spans:
        attached = leading_from >= 0 and span.first <= previous_last + 1
        begin = leading_from if attached else span.first
        # The comma in "}," and the comment in "x = 1  # one" belong to the previous node.
        shares_row = not attached and span.first <= previous_last
        if not shares_row and (rows[-1] if rows else first) < begin < end:
            rows.append(begin)
        leading_from = begin if not shares_row and leading(span.node) else -1
        previous_last = span.last
    return rows


def _parts(text: TextLines, task: _Task, spans: Sequence[_Span], rows: list[int]) -> list[_Task]:
    room = text.share(task.first, task.end)
    parts: list[_Task] = []
    at = 0
    for first, end in pairwise([task.first, *rows, task.end]):
        inside: list[Node] = []
        while at < len(spans) and spans[at].first < end:
            inside.append(spans[at].node)
            at += 1
        if parts:
            parts.append(_Task(first, end, task.level + 1, room, tuple(inside)))
        else:
            parts.append(_Task(first, end, task.level, task.room, tuple(inside)))
    return parts
