"""Pictures of calls: small graphs as text, laid out in layers, and as SVG.

The text has a line for each call, so that it can stand in an answer, and be read without a picture:

    Client.send @ repo/client.py:12 -> Session.request @ repo/session.py:40

`~>` instead of `->` is a possible call. The place of the first is that of the call.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import re2
from django.template.loader import render_to_string

# The language of a fence in Markdown that holds such a text.
FENCE = "calls"
# Limits of a picture. What is beyond them is only in the list.
MAX_NODES, MAX_CALLS = 20, 40
MAX_TEXT_LINES, MAX_LINE = 200, 1_200
# In CSS pixels.
NODE_HEIGHT, ROW, GAP, PADDING, MARGIN = 28, 40, 56, 10, 4
CHARACTER = 7.4  # the width of one in the font of code
MAX_LABEL = 30
# Layers with at most so many nodes are drawn from top to bottom.
MAX_BESIDE = 2
SWEEPS = 4

_LINE = re2.compile(r"(?P<start>.+?) (?P<kind>[-~])> (?P<end>.+)")
_PLACE = re2.compile(r"(?P<name>.+) @ (?P<path>.+):(?P<line>[0-9]{1,7})")
# The URL of a line and of its fragment for the pane beside; None if it may not be linked.
Links = Callable[[str, int], tuple[str, str] | None]


class Node(NamedTuple):
    """A definition."""

    name: str
    path: str  # with its repository; "" if it is unknown
    line: int  # 1-based; 0 if it is unknown

    @property
    def text(self) -> str:
        return f"{self.name} @ {self.path}:{self.line}" if self.path else self.name


class Arc(NamedTuple):
    """A call."""

    start: Node
    end: Node
    proven: bool

    @property
    def text(self) -> str:
        return f"{self.start.text} {'-' if self.proven else '~'}> {self.end.text}"


def written(arcs: Sequence[Arc]) -> str:
    """The calls as text, a line for each."""
    return "\n".join(" ".join(arc.text.split()) for arc in arcs)


def read(text: str) -> list[Arc]:
    """The calls of a text; [] if a line is none."""
    arcs = []
    for line in text.strip().split("\n")[: MAX_TEXT_LINES + 1]:
        match = _LINE.fullmatch(line.strip()) if len(line) <= MAX_LINE else None
        if match is None:
            return []
        arcs.append(Arc(_node(match["start"]), _node(match["end"]), match["kind"] == "-"))
    return arcs[:MAX_TEXT_LINES]


def _node(text: str) -> Node:
    match = _PLACE.fullmatch(text.strip())
    return Node(match["name"], match["path"], int(match["line"])) if match else Node(text, "", 0)


# --- layout ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """A node in the picture."""

    node: Node
    x: int
    y: int
    width: int

    @property
    def label(self) -> str:
        name = self.node.name
        return name if len(name) <= MAX_LABEL else f"…{name[1 - MAX_LABEL :]}"

    height = NODE_HEIGHT

    @property
    def text_x(self) -> int:
        return self.x + PADDING

    @property
    def text_y(self) -> int:
        return self.y + 18


def _layers(names: Sequence[str], arcs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The names by the longest way to them; calls back in a circle do not count."""
    layer = dict.fromkeys(names, 0)
    below: dict[str, list[str]] = {name: [] for name in names}
    for start, end in arcs:
        if not _reaches(below, end, start):
            below[start].append(end)
    for _ in names:
        for start, ends in below.items():
            for end in ends:
                layer[end] = max(layer[end], layer[start] + 1)
    layers: list[list[str]] = [[] for _ in range(max(layer.values(), default=0) + 1)]
    for name in names:
        layers[layer[name]].append(name)
    return layers


def _reaches(below: dict[str, list[str]], start: str, end: str) -> bool:
    waiting, seen = [start], {start}
    while waiting:
        name = waiting.pop()
        if name == end:
            return True
        waiting += [one for one in below[name] if one not in seen]
        seen.update(below[name])
    return False


def _ordered(layers: list[list[str]], arcs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The layers with each name near the middle of its neighbours."""
    beside: dict[str, list[str]] = {}
    for start, end in arcs:
        beside.setdefault(start, []).append(end)
        beside.setdefault(end, []).append(start)
    for _ in range(SWEEPS):
        at = {n: i / max(1, len(layer) - 1) for layer in layers for i, n in enumerate(layer)}
        layers = [
            sorted(layer, key=lambda name: _middle([at[one] for one in beside.get(name, [name])]))
            for layer in layers
        ]
    return layers


def _middle(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _boxes(layers: Sequence[Sequence[str]], nodes: dict[str, Node]) -> dict[str, Box]:
    widths = {n: round(min(len(n), MAX_LABEL) * CHARACTER) + 2 * PADDING for n in nodes}
    is_down = max(map(len, layers)) <= MAX_BESIDE
    boxes: dict[str, Box] = {}
    across = MARGIN
    for number, layer in enumerate(layers):
        wide = max(widths[name] for name in layer)
        beside = MARGIN
        for at, name in enumerate(layer):
            if is_down:
                x, y = beside, MARGIN + number * (NODE_HEIGHT + ROW)
                beside += widths[name] + GAP // 2
            else:
                tallest = max(map(len, layers))
                x, y = across, round(MARGIN + (at + (tallest - len(layer)) / 2) * ROW)
            boxes[name] = Box(nodes[name], x, y, widths[name])
        across += wide + GAP
    return boxes


def _curve(start: Box, end: Box) -> str:
    """The path of an arc: from the right side to the left, from the lower side to the upper, or
    around the side for a call back."""
    middle = NODE_HEIGHT // 2
    if end.x > start.x + start.width:
        x, y, to_x, to_y = start.x + start.width, start.y + middle, end.x, end.y + middle
        bend, head = (to_x - x) // 2, f"M{to_x - 6} {to_y - 4}L{to_x} {to_y}L{to_x - 6} {to_y + 4}"
        return f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}{head}"
    if end.y > start.y:
        x, y, to_x, to_y = start.x + 24, start.y + NODE_HEIGHT, end.x + 24, end.y
        bend, head = (to_y - y) // 2, f"M{to_x - 4} {to_y - 6}L{to_x} {to_y}L{to_x + 4} {to_y - 6}"
        return f"M{x} {y}C{x} {y + bend} {to_x} {to_y - bend} {to_x} {to_y}{head}"
    x, y, to_x, to_y = start.x + start.width, start.y + 8, end.x + end.width, end.y + 20
    head = f"M{to_x + 6} {to_y - 4}L{to_x} {to_y}L{to_x + 6} {to_y + 4}"
    return f"M{x} {y}C{x + 40} {y} {to_x + 40} {to_y} {to_x} {to_y}{head}"


# --- the picture ----------------------------------------------------------------------------------


def _first(arcs: Sequence[Arc]) -> Iterator[Arc]:
    """The calls that have room, each pair of definitions once."""
    names: dict[str, None] = {}
    pairs: set[tuple[str, str]] = set()
    for arc in arcs:
        pair = (arc.start.name, arc.end.name)
        added = names | dict.fromkeys(pair)
        if pair not in pairs and len(added) <= MAX_NODES and len(pairs) < MAX_CALLS:
            names = added
            pairs.add(pair)
            yield arc


def picture(arcs: Sequence[Arc], links: Links) -> str:
    """The SVG of some calls, and a list of all of them for readers of the screen. Not sanitised:
    the template escapes all texts."""
    drawn = list(_first(arcs))
    nodes: dict[str, Node] = {}
    for arc in drawn:
        # The place of a definition that is called is its own; that of a caller is the call.
        nodes.setdefault(arc.start.name, arc.start)
    for arc in drawn:
        nodes.setdefault(arc.end.name, arc.end)
    pairs = [(arc.start.name, arc.end.name) for arc in drawn if arc.start.name != arc.end.name]
    boxes = _boxes(_ordered(_layers(list(nodes), pairs), pairs), nodes)
    curves = [
        (_curve(boxes[arc.start.name], boxes[arc.end.name]), arc.proven)
        for arc in drawn
        if arc.start.name != arc.end.name
    ]
    return render_to_string(
        "browse/_graph.html",
        {
            "boxes": [(box, links(box.node.path, box.node.line)) for box in boxes.values()],
            "curves": curves,
            "arcs": [(arc, links(arc.start.path, arc.start.line)) for arc in arcs],
            "left_out": len({(a.start.name, a.end.name) for a in arcs}) - len(drawn),
            "width": max(box.x + box.width for box in boxes.values()) + MARGIN + 40,
            "height": max(box.y for box in boxes.values()) + NODE_HEIGHT + MARGIN,
        },
    )
