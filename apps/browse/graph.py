"""Pictures of calls: small graphs as text, and as SVG.

The text has a line for each call, so that it can stand in an answer, and be read without a picture:

    Client.send @ repo/client.py:12 -> Session.request @ repo/session.py:40

`~>` instead of `->` is a possible call. The place of the first is that of the call.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import re2
from django.template.loader import render_to_string

from apps.core.drawing.layered import Box, fitting, label_width, layered

# The language of a fence in Markdown that holds such a text.
FENCE = "calls"
# Limits of a picture. What is beyond them is only in the list.
MAX_NODES, MAX_CALLS = 20, 40
MAX_TEXT_LINES, MAX_LINE = 200, 1_200
MAX_LABEL = 30

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


class Drawn(NamedTuple):
    """What a picture shows of a node.

    url, fragment: where it leads, and the same for the pane beside; "" for nowhere
    name: for readers of the screen, if the label does not say it
    """

    label: str
    title: str
    url: str
    fragment: str = ""
    name: str = ""
    is_marked: bool = False


class Drawing(NamedTuple):
    """A graph for `_drawing.html`. curves: paths, and whether they are certain"""

    boxes: Sequence[tuple[Box, str, Drawn]]  # with the label as it is shown
    curves: Sequence[tuple[str, bool]]
    width: int
    height: int


def drawing_of(nodes: Mapping[str, Drawn], arcs: Mapping[tuple[str, str], bool]) -> Drawing:
    """A graph in layers. arcs: pairs of different nodes, and whether they are certain"""
    labels = {key: fitting(node.label, MAX_LABEL) for key, node in nodes.items()}
    widths = {key: label_width(label) for key, label in labels.items()}
    layout = layered(widths, arcs.keys())
    return Drawing(
        [(box, labels[key], nodes[key]) for key, box in layout.boxes.items()],
        [(path, arcs[pair]) for pair, path in layout.curves.items()],
        layout.width,
        layout.height,
    )


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
    pairs = {
        (arc.start.name, arc.end.name): arc.proven
        for arc in drawn
        if arc.start.name != arc.end.name
    }
    return render_to_string(
        "browse/_graph.html",
        {
            "drawing": drawing_of({n: _drawn(node, links) for n, node in nodes.items()}, pairs),
            "arcs": [(arc, links(arc.start.path, arc.start.line)) for arc in arcs],
            "left_out": len({(a.start.name, a.end.name) for a in arcs}) - len(drawn),
        },
    )


def _drawn(node: Node, links: Links) -> Drawn:
    url, fragment = links(node.path, node.line) or ("", "")
    return Drawn(
        node.name, node.text, url, fragment, f"{node.name}, line {node.line} of {node.path}"
    )
