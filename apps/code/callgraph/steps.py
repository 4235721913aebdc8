"""Chains of expressions: the steps from right to left that languages share."""

from collections.abc import Callable, Container, Mapping, Sequence

from apps.code.callgraph.facts import LITERAL, MAX_CHAIN, SELF, SUPER, UNKNOWN, UNKNOWN_CHAIN, Chain
from apps.code.callgraph.scopes import Node, field, text

# By type of node: appends parts, from right to left, and returns the node to the left, if any.
Step = Callable[[Node, list[str]], Node]
Steps = Mapping[str, Step]


def follow(node: Node, steps: Steps, literals: Container[str]) -> Chain:
    """The chain of an expression; unknown without one. `literals`: types of nodes that have a
    built-in type."""
    parts: list[str] = []
    while node is not None and len(parts) <= MAX_CHAIN:
        step = steps.get(node.type)
        if step is None:
            parts.append(LITERAL if node.type in literals else UNKNOWN)
            break
        node = step(node, parts)
    return chain_of(parts)


def chain_of(parts: Sequence[str]) -> Chain:
    """The chain of parts that were collected from right to left. Of one that is too long, the last
    part is known."""
    if not parts:
        return UNKNOWN_CHAIN
    return tuple(reversed(parts)) if len(parts) <= MAX_CHAIN else (UNKNOWN, parts[0])


def plain(node: Node, parts: list[str]) -> None:
    """A name."""
    parts.append(text(node))


def this(node: Node, parts: list[str]) -> None:
    """`this` and `super`."""
    parts.append(SUPER if node.type == "super" else SELF)


def member(name: str, left: str) -> Step:
    """The name in a field, of what is in another one."""

    def step(node: Node, parts: list[str]) -> Node:
        parts.append(text(field(node, name)))
        return field(node, left)

    return step


def applied(part: str, left: str) -> Step:
    """A call or the like, of what is in a field."""

    def step(node: Node, parts: list[str]) -> Node:
        parts.append(part)
        return field(node, left)

    return step


def inner(name: str = "", child: int = 0) -> Step:
    """The value of what is in a field; without it, of a child."""
    return lambda node, parts: field(node, name) or node.named_children[child]
