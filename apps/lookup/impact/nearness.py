"""Tells which of the tests that reach a change are near it.

In a framework, most tests reach most code. Those that fail name what is on the way: the changed
function, its class, or what is a few steps from there.
"""

from collections.abc import Mapping

from apps.lookup.impact.walk import Node, Walk, may_be_named
from apps.lookup.impact.words import WORDS


def distances(walk: Walk) -> Mapping[str, int]:
    """The names of definitions on the way and of the classes around them → the steps from the
    nearest of each name to the change."""
    steps: dict[str, int] = {}
    for node in walk.came_by:
        if not walk.is_test(node):
            distance = len(walk.way(node))
            for name in walk.symbol(node).split(".")[-2:]:
                if may_be_named(name):
                    steps[name] = min(distance, steps.get(name, distance))
    return steps


def nearness(walk: Walk, test: Node, distances: Mapping[str, int]) -> int:
    """The least distance of the names that the lines of a test have; without one, the steps of its
    way."""
    words = {word for line in walk.lines_of(test) for word in WORDS.findall(line)}
    return min((distances[word] for word in words & distances.keys()), default=len(walk.way(test)))
