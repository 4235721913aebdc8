"""Sizes as areas, lengths and heights."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import squarify

from apps.core.drawing.layered import Box

COLUMN, HEIGHT, SPACE = 14, 48, 3
LEAST = 2  # pixels of what is not nothing


class Span(NamedTuple):
    """A part of a bar."""

    x: int
    width: int


class Part(NamedTuple):
    """A part of a column."""

    kind: str
    y: int
    height: int


class Column(NamedTuple):
    """title: what it says; parts: from below"""

    title: str
    x: int
    parts: Sequence[Part]


class Chart(NamedTuple):
    """Columns side by side, for `_chart.html`. label: what they are, in words"""

    label: str
    columns: Sequence[Column]
    width: int
    height: int = HEIGHT
    column: int = COLUMN


def treemap(sizes: Sequence[float], box: Box) -> list[Box]:
    """Tiles that fill a box, with areas in the proportions of sizes (> 0, largest first)."""
    if not sizes or box.width <= 0 or box.height <= 0:
        return []
    areas = squarify.normalize_sizes(list(sizes), box.width, box.height)
    tiles = squarify.squarify(areas, box.x, box.y, box.width, box.height)
    return [_whole(tile["x"], tile["y"], tile["dx"], tile["dy"]) for tile in tiles]


def _whole(x: float, y: float, width: float, height: float) -> Box:
    """A tile with whole numbers, so that it ends where the next one begins."""
    left, top = round(x), round(y)
    return Box(left, top, round(x + width) - left, round(y + height) - top)


def spans(fractions: Sequence[float], width: int) -> list[Span]:
    """The parts of a bar, one after the other. fractions: 0 to 1, together at most 1"""
    ends = [round(end * width) for end in accumulate(fractions, initial=0.0)]
    return [Span(x, max(LEAST, end - x)) for x, end in pairwise(ends)]


def chart(label: str, values: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> Chart:
    """Columns, the tallest HEIGHT high. values: of each the title, and kinds with values, from
    below"""
    most = max((sum(value for _, value in parts) for _, parts in values), default=0) or 1
    found = [
        Column(title, number * (COLUMN + SPACE), _parts(parts, most))
        for number, (title, parts) in enumerate(values)
    ]
    return Chart(label, found, len(found) * (COLUMN + SPACE))


def _parts(values: Sequence[tuple[str, float]], most: float) -> list[Part]:
    parts, y = [], HEIGHT
    for kind, value in values:
        height = max(LEAST, round(value / most * HEIGHT)) if value else 0
        y = max(0, y - height)
        if height:
            parts.append(Part(kind, y, height))
    return parts
