"""Split a text along its syntax tree: nodes that are too long are split at their children.

Nothing is recursive, so the depth of the tree is not limited.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from operator import attrgetter
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

ROW = attrgetter("start_point.row")


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


def cut_along_tree(lines: Sequence[str], max_chars: int, grammar: str) -> Cut:
    """The pieces and declarations of a file, by its syntax tree. May never return."""
    codes = {kind: _Outlined.of(code) for kind, code in parse_all(lines, grammar).items()}
    text, main = TextLines(lines, max_chars), codes[""]
    if cells := cells_of(lines):
        parts = [_cut_cell(text, cell, codes.get(cell.kind)) for cell in cells]
    else:
        parts = [cut_tree(text, _top(main.code), main)]
    outlines = [outlined.outline for outlined in codes.values()]
    cut = cut_of(text, parts, [*outlines, *document_outlines(lines, grammar)])
    return cut._replace(unread=unread_percent(main.code.page or main.code.root))


def _cut_cell(text: TextLines, cell: Cell, outlined: _Outlined | None) -> list[Unit]:
    """The units of a cell of a notebook. No unit has lines of two cells."""
    if outlined is None:
        return cut_lines(text, cell.first, cell.end)
    children = outlined.code.root.children
    begin = bisect_left(children, cell.first, key=ROW)
    top = _Top(children[begin : bisect_left(children, cell.end, lo=begin, key=ROW)])
    return cut_tree(text, top, outlined, (cell.first, cell.end))


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


@cache
def _leads(grammar: str, kind: str) -> bool:
    """Whether a node of a type belongs to the next one, such as a comment."""
    return kind in LEADING.get(grammar, ()) or any(word in kind for word in LEADING_WORDS)


class _Task(NamedTuple):
    """A range of rows to split. The first four fields are those of Unit."""

    first: int
    end: int
    level: int
    room: int
    nodes: tuple[Node | _Top, ...]  # that begin in the range


def cut_tree(
    text: TextLines, top: Node | _Top, outlined: _Outlined, rows: tuple[int, int] | None = None
) -> list[Unit]:
    """The units of a parsed file, or of these rows (0-based, the end not included)."""
    units: list[Unit] = []
    starts, grammar = outlined.starts, outlined.code.grammar
    tasks = [_Task(*(rows or (0, len(text.lines))), 0, text.max_chars, (top,))]
    while tasks:
        task = tasks.pop()
        if text.fits(task.first, task.end) or task.end - task.first <= 1:
            at = bisect_left(starts, task.first)
            defines = at < len(starts) and starts[at] < task.end
            units.append(Unit(task.first, task.end, task.level, task.room, defines))
            continue
        parts = _cut(text, task, grammar)
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


def _cut(text: TextLines, task: _Task, grammar: str) -> list[_Task]:
    """The parts of a range, split where children of its nodes begin; [] if it has none."""
    nodes: Sequence[Node | _Top] = task.nodes
    while nodes:
        spans = [_span(child) for node in nodes for child in node.children]
        rows = _cut_rows(spans, task.first, task.end, grammar)
        # A node on one row cannot be split.
        spans = [span for span in spans if span.last > span.first]
        if rows:
            return _parts(text, task, spans, rows)
        nodes = [span.node for span in spans]
    return []


def _cut_rows(spans: Iterable[_Span], first: int, end: int, grammar: str) -> list[int]:
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
        leading_from = begin if not shares_row and _leads(grammar, span.node.type) else -1
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
        level = (task.level + 1, room) if parts else (task.level, task.room)
        parts.append(_Task(first, end, *level, tuple(inside)))
    return parts


def unread_percent(root: Node) -> int:
    """The share of a file that is in errors of its syntax tree, in percent. What an error contains
    whole, such as a call, counts as read."""
    if not root.has_error:
        return 0
    unread, nodes = 0, [root]
    while nodes:
        node = nodes.pop()
        if node.is_error:
            unread += _size(node) - sum(_size(child) for child in node.children if child.children)
        nodes += [child for child in node.children if child.has_error]
    return 100 * unread // max(1, _size(root))


def _size(node: Node) -> int:
    return node.end_byte - node.start_byte
