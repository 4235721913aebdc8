"""Cutting rows into ranges along blank lines, and merging the small ones.

A text is first cut as finely as needed, here or in `trees`. Every cut has a level, its depth. Then
ranges are merged across cuts, deepest first, so that a closing brace returns to its block before
two functions meet.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

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


class Unit(NamedTuple):
    """Rows first..end-1. `level` is the depth of the cut before it, `room` how large ranges that
    are merged across that cut may get, `defines` whether a definition begins inside."""

    first: int
    end: int
    level: int
    room: int
    defines: bool = False


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
