"""Pictures of calls: their text, where the nodes are, and that nothing in them runs."""

import re

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
