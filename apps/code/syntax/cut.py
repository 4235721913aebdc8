"""Split rows into ranges at blank lines, and merge small ranges.

A text is first split as finely as needed, here or in `trees`. Each split has a level, its depth.
Then ranges are merged across splits, the deepest first, so that a closing brace joins its block
before two functions join.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

# Ranges of fewer characters are merged with a neighbour.
SMALL = 200
# Merged ranges may exceed an even share of a range by this factor.
SLACK = 1.15


class TextLines:
    """The lines of a file, with the number of characters in any range of rows."""

    def __init__(self, lines: Sequence[str], max_chars: int) -> None:
        self.lines = lines
        self.max_chars = max_chars
        self._before = list(accumulate((len(line) + 1 for line in lines), initial=0))

    def size(self, first: int, end: int) -> int:
        """Characters of rows first..end-1, joined by newlines."""
        return self._before[end] - self._before[first] - 1

    def fits(self, first: int, end: int) -> bool:
        """Return True if rows first..end-1 are not too long for a chunk."""
        return self.size(first, end) <= self.max_chars

    def share(self, first: int, end: int) -> int:
        """Characters of each part if rows first..end-1 are split evenly, with SLACK."""
        size = self.size(first, end)
        parts = -(-size // self.max_chars)
        return min(self.max_chars, int(size / parts * SLACK))


class Unit(NamedTuple):
    """Consecutive rows that are not split further."""

    first: int  # 0-based
    end: int  # the row after the last
    level: int  # depth of the split before it
    room: int  # most characters of a range that is merged across that split
    defines: bool = False  # a definition begins inside


def cut_lines(text: TextLines, first: int, end: int, level: int = 0, room: int = 0) -> list[Unit]:
    """Units of rows first..end-1 without a syntax tree: one for each row. Splits where a paragraph
    begins have the lowest level."""
    share = text.max_chars
    units = [Unit(first, first + 1, level, room or share)]
    before_blank = not text.lines[first].strip() if first < end else False
    for row in range(first + 1, end):
        line = text.lines[row]
        depth = (1 if before_blank else 3) + line[:1].isspace()
        units.append(Unit(row, row + 1, level + depth, share))
        before_blank = not line.strip()
    return units if first < end else []


def merge(text: TextLines, units: Sequence[Unit]) -> list[tuple[int, int]]:
    """Ranges of rows (first, end) in order, at most `text.max_chars` characters each, except for
    single lines."""
    merging = _Merging(text, units)
    cuts = sorted(range(1, len(units)), key=lambda index: -units[index].level)
    # First merge statements and small definitions into ranges of even size. Then merge ranges that
    # are still small with any neighbour that has room.
    cuts = [cut for cut in cuts if not merging.across(cut, units[cut].room, only_small=False)]
    for cut in cuts:
        merging.across(cut, text.max_chars, only_small=True)
    return merging.ranges()


class _Merging:
    """Ranges of units. Each array is valid only at one end of a range."""

    def __init__(self, text: TextLines, units: Sequence[Unit]) -> None:
        self._text = text
        self._units = units
        self._first = list(range(len(units)))  # first unit of the range that ends here
        self._last = list(range(len(units)))  # last unit of the range that begins here
        # For the range that begins with this unit: a definition begins in it.
        self._defines = [unit.defines for unit in units]

    def across(self, cut: int, room: int, *, only_small: bool) -> bool:
        """Merge the two ranges that meet before unit `cut`. Return False if they must not be."""
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
        """The merged ranges of rows (first, end)."""
        ranges, at = [], 0
        while at < len(self._units):
            ranges.append((self._units[at].first, self._units[self._last[at]].end))
            at = self._last[at] + 1
        return ranges
