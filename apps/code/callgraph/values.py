"""What an expression may stand for."""

from collections.abc import Iterable
from typing import NamedTuple

from apps.code.callgraph.facts import MODULE


class Value(NamedTuple):
    """One possible value of an expression.

    kind: `unknown`; `external`: outside of the repository; `module`; `definition`; `instance` of a
    class; `super` of a class; `container` of values; `method` of a container, whose call returns
    `receiver`.
    """

    kind: str
    path: str = ""  # of a file; of a module, its key
    number: int = MODULE  # index of the definition; of an instance, of its class
    receiver: "Value | None" = None  # the object of a method; what a container holds


Values = frozenset[Value]
NOTHING = Value("unknown")
EXTERNAL = Value("external")
NO_VALUES: Values = frozenset()
UNKNOWN_VALUES: Values = frozenset([NOTHING])
EXTERNAL_VALUES: Values = frozenset([EXTERNAL])


def ordered(values: Values) -> Iterable[Value]:
    """The values in an order that is the same in each process: where a circle is cut depends on
    which value is followed first."""
    return sorted(values, key=str) if len(values) > 1 else values


def only(value: Value) -> Values:
    return frozenset([value])


def known(values: Values) -> Values:
    return values - UNKNOWN_VALUES - EXTERNAL_VALUES


def bound_to(value: Value, receiver: Value | None) -> Value:
    """A method with the object that it is called on. Other values stay."""
    if value.kind != "definition":
        return value
    return value._replace(receiver=receiver and receiver._replace(receiver=None))
