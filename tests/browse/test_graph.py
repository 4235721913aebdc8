"""Pictures of calls: their text, where the nodes are, and that nothing in them runs."""

import random
import re
from collections.abc import Iterator

import pytest

from apps.browse.graph import MAX_NODES, Arc, Node, picture, read, written

A, B, C = Node("main", "repo/cli.py", 4), Node("serve", "repo/cli.py", 8), Node("lift", "", 0)
ARCS = [Arc(A, B, True), Arc(B, C, False)]


def no_links(path: str, line: int) -> None:
    """No line is linked."""


def places(svg: str) -> dict[str, tuple[int, int]]:
    """Label → x and y of its box."""
    pattern = r'<rect x="(\d+)" y="(\d+)"[^>]*></rect><text[^>]*>([^<]*)</text>'
    return {label: (int(x), int(y)) for x, y, label in re.findall(pattern, svg)}


def test_calls_are_read_as_they_are_written() -> None:
    text = written(ARCS)
    assert text == "main @ repo/cli.py:4 -> serve @ repo/cli.py:8\nserve @ repo/cli.py:8 ~> lift"
    assert read(text) == ARCS


def test_a_text_with_another_line_is_no_picture() -> None:
    assert read("main -> serve\nand so on") == []
    assert read("") == []


def test_a_chain_goes_down() -> None:
    at = places(picture(ARCS, no_links))
    assert at["main"][1] < at["serve"][1] < at["lift"][1]


def wrong_turns(svg: str) -> list[tuple[str, str]]:
    """Labels of boxes that a curve goes through, with the curve."""
    boxes = [
        (label, *map(int, numbers))
        for *numbers, label in re.findall(
            r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"[^>]*></rect>'
            r"<text[^>]*>([^<]*)</text>",
            svg,
        )
    ]
    return [
        (label, curve)
        for curve in re.findall(r'<path [^>]*d="(M[^M]*)', svg)
        for label, left, top, width, height in boxes
        if any(
            0.1 < x - left < width - 0.1 and 0.1 < y - top < height - 0.1 for x, y in points(curve)
        )
    ]


def points(curve: str) -> Iterator[tuple[float, float]]:
    """Points of a path of lines and cubic curves."""
    at = (0.0, 0.0)
    for letter, text in re.findall(r"([MLC])([^MLC]*)", curve):
        numbers = [float(number) for number in text.split()]
        ends = list(zip(numbers[::2], numbers[1::2], strict=True))
        if letter != "M":
            a, b, c, d = (at, *ends) if letter == "C" else (at, at, *ends, *ends)
            for step in range(1, 100):
                t = step / 100
                weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
                corners = list(zip(weights, (a, b, c, d), strict=True))
                yield sum(w * p[0] for w, p in corners), sum(w * p[1] for w, p in corners)
        at = ends[-1]


@pytest.mark.parametrize(
    "calls", ["a-b b-c a-c", "a-b b-c c-d a-d d-a d-b", "a-z b-z c-z d-a d-z z-e"]
)
def test_no_call_goes_through_the_box_of_another(calls: str) -> None:
    """A direct call would seem to call what is between."""
    pairs = [pair.split("-") for pair in calls.split()]
    arcs = [Arc(Node(a * 5, "", 0), Node(b * 5, "", 0), True) for a, b in pairs]
    assert wrong_turns(picture(arcs, no_links)) == []


@pytest.mark.parametrize("seed", range(8))
def test_no_call_of_a_tangle_goes_through_a_box(seed: int) -> None:
    chance = random.Random(seed)
    nodes = [Node("name" * chance.randint(1, 6) + str(n), "", 0) for n in range(14)]
    pairs = [chance.sample(nodes, 2) for _ in range(26)]
    svg = picture([Arc(a, b, True) for a, b in pairs], no_links)
    assert wrong_turns(svg) == []
    width, height = re.findall(r'viewBox="0 0 (\d+) (\d+)"', svg)[0]
    spots = [spot for curve in re.findall(r' d="(M[^M]*)', svg) for spot in points(curve)]
    assert all(0 < x < int(width) and 0 < y < int(height) for x, y in spots)


def test_many_callers_stand_to_the_left_of_what_they_call() -> None:
    callers = [Node(f"caller_{n}", f"repo/{n}.py", n + 1) for n in range(9)]
    at = places(picture([Arc(one, A, True) for one in callers], no_links))
    assert len({at[one.name][1] for one in callers}) == 9
    assert all(at[one.name][0] < at["main"][0] for one in callers)


def test_a_circle_and_a_call_of_itself_are_drawn() -> None:
    svg = picture([Arc(A, B, True), Arc(B, A, True), Arc(A, A, True)], no_links)
    assert svg.count("<path") == 2 and len(places(svg)) == 2


def test_what_has_no_room_is_in_the_list() -> None:
    arcs = [Arc(Node(f"caller_{n}", "", 0), A, True) for n in range(60)]
    svg = picture(arcs, no_links)
    assert len(places(svg)) == MAX_NODES
    assert svg.count("<li>") == 60
    assert "(41 of them not in the picture)" in svg


def test_a_node_links_to_its_line_where_there_is_a_link() -> None:
    svg = picture(ARCS, lambda path, line: ("/code/x", "/ui/x") if path else None)
    assert svg.count('<a class="graph__node" href="/code/x" data-source="/ui/x"') == 2
    assert svg.count('<g class="graph__node"') == 1


def test_no_text_becomes_markup_and_no_style_is_inline() -> None:
    hostile = Node('<script>alert(1)</script>" onload="x', "repo/<b>.py", 1)
    svg = picture([Arc(hostile, A, True)], no_links)
    assert "<script" not in svg and "<b>" not in svg and 'onload="' not in svg
    assert "style=" not in svg
