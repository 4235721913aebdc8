"""Cutting a text along its syntax tree: what fits stays whole, the rest is cut at its children.

No step calls itself, so a deep tree is as good as a flat one.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from tree_sitter import Node, Parser

from apps.code.syntax.cut import Text, Unit, cut_lines
from apps.code.syntax.declared import declarations
from apps.code.syntax.outline import captures_of, language, outline
from apps.code.syntax.pieces import Cut, cut_of
from apps.code.syntax.queries import LEADING, LEADING_WORDS


def cut_along_tree(lines: Sequence[str], max_chars: int, grammar: str) -> Cut:
    """A file cut along its syntax tree. May never return."""
    # Several grammars (make, for one) do not see a last line that is not ended.
    source = ("\n".join(lines) + "\n").encode()
    root = Parser(language(grammar)).parse(source).root_node
    captures = captures_of(grammar, root, source)
    found = outline(grammar, captures, source)
    found.declarations.extend(declarations(grammar, captures, found, source))
    text = Text(lines, max_chars)
    starts = [definition.first for definition in found.definitions]
    units = cut_tree(text, root, starts, lambda node: _leads(grammar, node.type))
    return cut_of(text, units, found)


@cache
def _leads(grammar: str, kind: str) -> bool:
    return kind in LEADING.get(grammar, ()) or any(word in kind for word in LEADING_WORDS)


class _Task(NamedTuple):
    first: int
    end: int
    level: int
    room: int
    nodes: tuple[Node, ...]


def cut_tree(
    text: Text, root: Node, starts: Sequence[int], leading: Callable[[Node], bool]
) -> list[Unit]:
    """Units of a parsed file. `starts`: the rows where definitions begin, sorted; `leading` tells
    the nodes that belong to the one that follows them."""
    units: list[Unit] = []
    tasks = [_Task(0, len(text.lines), 0, text.max_chars, (root,))]
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
    """A node and its rows, both included; a line break at its end is not a row of its own."""

    first: int
    last: int
    node: Node


def _span(node: Node) -> _Span:
    first, end = node.start_point.row, node.end_point
    return _Span(first, end.row - (end.column == 0 and end.row > first), node)


def _cut(text: Text, task: _Task, leading: Callable[[Node], bool]) -> list[_Task]:
    """The parts of a range, cut where the children of its nodes begin; none where they do not."""
    nodes: Sequence[Node] = task.nodes
    while nodes:
        spans = [_span(child) for node in nodes for child in node.children]
        rows = _cut_rows(spans, task.first, task.end, leading)
        # A node on one row has nothing to cut.
        spans = [span for span in spans if span.last > span.first]
        if rows:
            return _parts(text, task, spans, rows)
        nodes = [span.node for span in spans]
    return []


def _cut_rows(
    spans: Iterable[_Span], first: int, end: int, leading: Callable[[Node], bool]
) -> list[int]:
    """Rows strictly inside first..end where a node begins, with what leads up to it."""
    rows: list[int] = []
    led_from, previous_last = -1, -1
    for span in spans:
        attached = led_from >= 0 and span.first <= previous_last + 1
        begin = led_from if attached else span.first
        # The comma in "}," and the comment in "x = 1  # one" stay with what they follow.
        shares_row = not attached and span.first <= previous_last
        if not shares_row and (rows[-1] if rows else first) < begin < end:
            rows.append(begin)
        led_from = begin if not shares_row and leading(span.node) else -1
        previous_last = span.last
    return rows


def _parts(text: Text, task: _Task, spans: Sequence[_Span], rows: list[int]) -> list[_Task]:
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
