"""Cutting rows into ranges, along a syntax tree or along blank lines, and merging the small ones.

A text is first cut as finely as needed: whatever fits stays whole, the rest is cut where its
children begin. Every cut has a level, its depth in the tree. Then ranges are merged across cuts,
deepest first, so that a closing brace returns to its block before two functions meet.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from tree_sitter import Node

# Smaller ranges are put to a neighbour's.
SMALL = 200
# How much fuller than an even share a range may get before the next begins.
SLACK = 1.15


class Text:
    """The lines of a file, and how many characters any range of them has."""

    def __init__(self, lines: Sequence[str], max_chars: int) -> None:
        self.lines = lines
        self.max_chars = max_chars
        self._before = list(accumulate((len(line) + 1 for line in lines), initial=0))

    def size(self, first: int, end: int) -> int:
        """Characters of rows first..end-1, joined by newlines."""
        return self._before[end] - self._before[first] - 1

    def fits(self, first: int, end: int) -> bool:
        return self.size(first, end) <= self.max_chars

    def share(self, first: int, end: int) -> int:
        """The characters of each part where a range is cut evenly."""
        size = self.size(first, end)
        parts = -(-size // self.max_chars)
        return min(self.max_chars, int(size / parts * SLACK))


@dataclass(frozen=True, slots=True)
class Unit:
    """Rows first..end-1. `level` is the depth of the cut before it, `room` how large ranges that
    are merged across that cut may get, `defines` whether a definition begins inside."""

    first: int
    end: int
    level: int
    room: int
    defines: bool = False


@dataclass(frozen=True, slots=True)
class _Task:
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
        if not shares_row and first < begin < end and begin != (rows[-1] if rows else -1):
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


def cut_lines(text: Text, first: int, end: int, level: int = 0, room: int = 0) -> list[Unit]:
    """Units of rows without a tree: every line one, cut best where a paragraph begins."""
    share = text.max_chars
    units = [Unit(first, first + 1, level, room or share)]
    before_blank = not text.lines[first].strip() if first < end else False
    for row in range(first + 1, end):
        line = text.lines[row]
        depth = (1 if before_blank else 3) + line[:1].isspace()
        units.append(Unit(row, row + 1, level + depth, share))
        before_blank = not line.strip()
    return units if first < end else []


def merge(text: Text, units: Sequence[Unit]) -> list[tuple[int, int]]:
    """Ranges of rows (first, end) in order, none of more than max_chars unless it is one line."""
    merging = _Merging(text, units)
    cuts = sorted(range(1, len(units)), key=lambda index: -units[index].level)
    # First statements and small definitions share room evenly, then what is still small goes to
    # whichever neighbour has any room at all.
    cuts = [cut for cut in cuts if not merging.across(cut, units[cut].room, only_small=False)]
    for cut in cuts:
        merging.across(cut, text.max_chars, only_small=True)
    return merging.ranges()


class _Merging:
    """Ranges of units. Each array speaks of a range at one of its ends, stale in between."""

    def __init__(self, text: Text, units: Sequence[Unit]) -> None:
        self._text = text
        self._units = units
        self._first = list(range(len(units)))  # of the range that ends with this unit
        self._last = list(range(len(units)))  # of the range that begins with this unit
        self._defines = [unit.defines for unit in units]  # for the range that begins here

    def across(self, cut: int, room: int, *, only_small: bool) -> bool:
        """Merge the two ranges that meet before unit `cut`, where they may be."""
        left, last = self._first[cut - 1], self._last[cut]
        begin, middle, end = self._units[left].first, self._units[cut].first, self._units[last].end
        if self._text.size(begin, end) > room:
            return False
        definitions = self._defines[left] or self._defines[cut]
        if only_small or definitions:
            sizes = self._text.size(begin, middle), self._text.size(middle, end)
            if min(sizes) >= SMALL:
                return False
        self._first[last], self._last[left] = left, last
        self._defines[left] = definitions
        return True

    def ranges(self) -> list[tuple[int, int]]:
        found, at = [], 0
        while at < len(self._units):
            found.append((self._units[at].first, self._units[self._last[at]].end))
            at = self._last[at] + 1
        return found
