"""Small directed graphs in layers: each arc leads to a later layer, unless it closes a circle.

Sugiyama's method in its simplest form: layers by the longest path, lanes through the layers that
an arc skips, and barycentres for the order in them.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

HEIGHT, ROW, GAP, BESIDE, PADDING, MARGIN = 28, 40, 56, 28, 10, 4
CHARACTER = 7.4  # the width of one in the font of code, at the size of labels
# Layers with at most so many nodes are rows; others, too, if they would be wider as columns.
MAX_BESIDE, WIDE = 2, 900
SWEEPS = 4
# The room of a lane, and how far an arc back is from one forward between the same nodes.
LANE, SHIFT = 14, 6


class Box(NamedTuple):
    """A rectangle of a picture, with room for a label."""

    x: int
    y: int
    width: int
    height: int = HEIGHT

    @property
    def text_x(self) -> int:
        return self.x + PADDING

    @property
    def text_y(self) -> int:
        return self.y + 18


class Lane(NamedTuple):
    """Room in a layer for the arcs that pass it on their way to the same node, or back from it."""

    node: str
    layer: int
    is_back: bool


Key = str | Lane
Places = dict[Key, Box]


def label_width(text: str) -> int:
    """The width of a box with this label."""
    return round(len(text) * CHARACTER) + 2 * PADDING


def fitting(text: str, length: int) -> str:
    """The end of a text; `…` says that more is before it."""
    return text if len(text) <= length else f"…{text[len(text) - length + 1 :]}"


class Layout(NamedTuple):
    """Where the boxes of nodes are, and the paths of arcs between them."""

    boxes: dict[str, Box]
    curves: dict[tuple[str, str], str]
    width: int
    height: int


def layered(widths: Mapping[str, int], arcs: Collection[tuple[str, str]]) -> Layout:
    """A graph of at least one node. widths: of their boxes; arcs: pairs of different nodes

    Layers are columns, from left to right; or rows, from top to bottom, if that is narrower.
    """
    number = _numbers(list(widths), arcs)
    chains = {arc: _chain(*arc, number) for arc in arcs}
    links = list(dict.fromkeys(pair for chain in chains.values() for pair in pairwise(chain)))
    layer_of: dict[Key, int] = dict(number.items())
    layer_of |= {key: key.layer for pair in links for key in pair if isinstance(key, Lane)}
    layers: list[list[Key]] = [[] for _ in range(max(number.values()) + 1)]
    for key, layer in layer_of.items():
        layers[layer].append(key)
    layers = _ordered(layers, links)
    across = sum(_column_width(layer, widths) + GAP for layer in layers)
    down = max(_row_width(layer, widths) for layer in layers)
    most = max(sum(key in widths for key in layer) for layer in layers)
    is_down = most <= MAX_BESIDE or (across > WIDE and down < across)
    places = _rows(layers, widths, down) if is_down else _columns(layers, widths)
    curves = {}
    for (start, end), chain in chains.items():
        boxes, is_back = [places[key] for key in chain], number[start] > number[end]
        curves[start, end] = _path(boxes, is_back=is_back, is_down=is_down)
    width = max(box.x + box.width for box in places.values()) + SHIFT + MARGIN
    height = max(box.y + box.height for box in places.values()) + SHIFT + MARGIN
    return Layout({name: places[name] for name in widths}, curves, width, height)


def _numbers(names: Sequence[str], arcs: Collection[tuple[str, str]]) -> dict[str, int]:
    """The layer of each name, by the longest way to it; arcs back in a circle do not count."""
    layer = dict.fromkeys(names, 0)
    below: dict[str, list[str]] = {name: [] for name in names}
    for start, end in arcs:
        if not _reaches(below, end, start):
            below[start].append(end)
    for _ in names:
        for start, ends in below.items():
            for end in ends:
                layer[end] = max(layer[end], layer[start] + 1)
    return layer


def _chain(start: str, end: str, number: Mapping[str, int]) -> list[Key]:
    """An arc from layer to layer: its nodes, and lanes between them. That of an arc back begins
    at its end."""
    is_back = number[start] > number[end]
    first, last = (end, start) if is_back else (start, end)
    between = range(number[first] + 1, number[last])
    return [first, *(Lane(last, layer, is_back) for layer in between), last]


def _reaches(below: dict[str, list[str]], start: str, end: str) -> bool:
    waiting, seen = [start], {start}
    while waiting:
        name = waiting.pop()
        if name == end:
            return True
        waiting += [one for one in below[name] if one not in seen]
        seen.update(below[name])
    return False


def _ordered(layers: list[list[Key]], links: Collection[tuple[Key, Key]]) -> list[list[Key]]:
    """The layers with each node and lane near the middle of its neighbours."""
    beside: dict[Key, list[Key]] = {}
    for start, end in links:
        beside.setdefault(start, []).append(end)
        beside.setdefault(end, []).append(start)
    for _ in range(SWEEPS):
        at = {k: i / max(1, len(layer) - 1) for layer in layers for i, k in enumerate(layer)}
        layers = [
            sorted(layer, key=lambda key: fmean([at[one] for one in beside.get(key, [key])]))
            for layer in layers
        ]
    return layers


def _row_width(layer: Sequence[Key], widths: Mapping[str, int]) -> int:
    return sum(LANE if isinstance(key, Lane) else widths[key] + BESIDE for key in layer)


def _column_width(layer: Sequence[Key], widths: Mapping[str, int]) -> int:
    return max((widths[key] for key in layer if not isinstance(key, Lane)), default=0)


def _column_height(layer: Sequence[Key]) -> int:
    return sum(LANE if isinstance(key, Lane) else ROW for key in layer)


def _rows(layers: Sequence[Sequence[Key]], widths: Mapping[str, int], room: int) -> Places:
    places: Places = {}
    for number, layer in enumerate(layers):
        x = MARGIN + (room - _row_width(layer, widths)) // 2
        for key in layer:
            width = 0 if isinstance(key, Lane) else widths[key]
            places[key] = Box(x, MARGIN + number * (HEIGHT + ROW), width)
            x += _row_width([key], widths)
    return places


def _columns(layers: Sequence[Sequence[Key]], widths: Mapping[str, int]) -> Places:
    tallest = max(map(_column_height, layers))
    places: Places = {}
    x = MARGIN
    for layer in layers:
        y, width = MARGIN + (tallest - _column_height(layer)) // 2, _column_width(layer, widths)
        for key in layer:
            place = Box(x, y, width, 0) if isinstance(key, Lane) else Box(x, y, widths[key])
            places[key] = place
            y += _column_height([key])
        x += width + GAP
    return places


def _path(boxes: Sequence[Box], *, is_back: bool, is_down: bool) -> str:
    """A curve through the gaps between layers, straight where boxes are beside it, with a head."""
    gap, shift = (ROW if is_down else GAP), (SHIFT if is_back else 0)

    def at(along: int, beside: int) -> str:
        return f"{beside} {along}" if is_down else f"{along} {beside}"

    spots = [
        (box.y, box.y + box.height, box.x + box.width // 2 + shift)
        if is_down
        else (box.x, box.x + box.width, box.y + box.height // 2 + shift)
        for box in boxes
    ]
    pieces = []
    for (_, x, y), (to_x, _, to_y) in pairwise(spots):
        middle = to_x - gap // 2
        curve = f"C{at(middle, y)} {at(middle, to_y)} {at(to_x, to_y)}"
        pieces.append(f"{at(x, y)}L{at(to_x - gap, y)}{curve}")
    tip, side = (spots[0][1], spots[0][2]) if is_back else (spots[-1][0], spots[-1][2])
    arm = tip + 6 if is_back else tip - 6
    head = f"M{at(arm, side - 4)}L{at(tip, side)}L{at(arm, side + 4)}"
    return f"M{'L'.join(pieces)}{head}"
