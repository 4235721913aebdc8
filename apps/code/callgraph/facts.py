"""What the call graph needs of one file: definitions, bindings, imports and calls.

An expression is a chain: the name on its left, then what is applied to it, from left to right.
`Client(url).session.get` is `("Client", "()", "session", "get")`. The marks are the constants
below. Expressions that a chain cannot express are UNKNOWN_CHAIN.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

Chain = tuple[str, ...]

# Roots of chains that are not names.
UNKNOWN = "?"
LITERAL = "%"  # a value of a built-in type
SELF = "%self"  # the object of the enclosing class, or the class itself in a class method
CLASS = "%class"
SUPER = "%super"
LOCAL = "%:"  # followed by the index of a definition of the file
# Parts of chains that are not members.
CALL = "()"
ELEMENT = "[]"  # of a list, or a value of a mapping
INSTANCE = "*"  # of the type before it
CONTAINER = "{}"  # a list or mapping of what is before it
ARGUMENT = "@"  # followed by i.k: parameter k of the function that is argument i of a call
# Name of a binding of a class that its methods see by the bare name.
TYPE_PARAMETER = "<{}>"
# Name of a binding of a function that is a member of it, and no local name.
MEMBER = ".{}"
UNKNOWN_CHAIN: Chain = (UNKNOWN,)
LITERAL_CHAIN: Chain = (LITERAL,)

MODULE = -1  # the scope of names outside all definitions
PAGE = 0  # the scope of the template of a page: the component, which is its first definition
# Limits of one file. Files that exceed them are generated; what follows is left out.
MAX_FACTS = 20_000
MAX_CHAIN = 12
# Return values of one function that are followed.
MAX_RETURNS = 4

# Flags of definitions.
PROPERTY = "property"
PRIVATE = "private"  # visible in its file only
PROTOTYPE = "prototype"  # declared, without a body
TYPE = "type"  # has no value that could be called
MADE = "made"  # a call has made it; `returns` is the call of what that returns


class Definition(NamedTuple):
    """A function, a class, or a scope without a name such as a lambda."""

    name: str  # "" for a scope without a name
    path: str  # the name, qualified by the definitions that enclose it
    kind: str  # "function", "class" (any type), "module" or ""
    first: int  # row, 0-based
    last: int  # row, included
    row: int  # of its name
    column: int  # of its name, in characters
    scope: int  # index of the enclosing definition, or MODULE
    owner: str = ""  # the type whose method this is, if it is defined outside of the type
    bases: tuple[Chain, ...] = ()  # of a class
    returns: tuple[Chain, ...] = ()  # values of a call; empty: unknown
    flags: tuple[str, ...] = ()


class Binding(NamedTuple):
    """An assignment, a parameter, or another name of a value. In a class: an attribute."""

    scope: int
    name: str
    row: int
    indent: int  # of its line, in characters
    within: int  # the scope of the names in `value`
    value: Chain


class Import(NamedTuple):
    """A name that comes from another file."""

    scope: int
    name: str  # as this file calls it; "*": all names; "": none
    module: str  # as it is written
    member: str  # its name there; "": the module itself
    row: int
    exported: bool = False  # the name is offered to importers, but not visible here


class Call(NamedTuple):
    """A call. The last part of the chain is the name that is called."""

    scope: int
    row: int
    column: int  # of the name that is called, in characters
    indent: int  # of its line, in characters
    chain: Chain


# What a name may stand for in its scope.
Item = Definition | Binding | Import


@dataclass(frozen=True)
class Facts:
    """The facts of a file, each kind in order of appearance."""

    definitions: Sequence[Definition] = ()
    bindings: Sequence[Binding] = ()
    imports: Sequence[Import] = ()
    calls: Sequence[Call] = ()
    package: str = ""  # as the file states it

    @cached_property
    def names(self) -> dict[tuple[int, str], list[Item]]:
        """(scope, name) → what has this name there."""
        table: dict[tuple[int, str], list[Item]] = {}
        items: Iterator[Item] = chain(self.definitions, self.bindings, self.imports)
        for item in items:
            is_hidden = isinstance(item, Import) and item.exported
            is_outside = isinstance(item, Definition) and item.owner
            if item.name and not is_hidden and not is_outside:
                table.setdefault((item.scope, item.name), []).append(item)
        return table

    @cached_property
    def exports(self) -> dict[str, list[Import]]:
        """Exported name → imports that only importers see."""
        table: dict[str, list[Import]] = {}
        for import_ in self.imports:
            if import_.exported:
                table.setdefault(import_.name, []).append(import_)
        return table

    @cached_property
    def index_of(self) -> dict[int, int]:
        """id of a Definition of this object → its index."""
        return {id(definition): index for index, definition in enumerate(self.definitions)}

    def named_scope(self, scope: int) -> int:
        """The innermost definition with a name that a scope is part of, or MODULE."""
        while scope != MODULE and not self.definitions[scope].name:
            scope = self.definitions[scope].scope
        return scope

    def enclosing(self, scope: int) -> str:
        """The path of `named_scope`; "" for MODULE."""
        scope = self.named_scope(scope)
        return self.definitions[scope].path if scope != MODULE else ""

    def around(self, row: int) -> int:
        """The smallest definition with a name that has a row, or MODULE."""
        having = [
            (one.last - one.first, index)
            for index, one in enumerate(self.definitions)
            if one.name and one.first <= row <= one.last
        ]
        return min(having)[1] if having else MODULE

    def as_json(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)]

    @classmethod
    def from_json(cls, value: Sequence[Any]) -> "Facts":
        definitions, bindings, imports, calls, package = value
        return cls(
            [_definition(definition) for definition in definitions],
            [Binding._make([*plain, tuple(value)]) for *plain, value in bindings],
            [Import(*fields) for fields in imports],
            [Call._make([*plain, tuple(chain)]) for *plain, chain in calls],
            package,
        )


def _definition(value: Sequence[Any]) -> Definition:
    *plain, bases, returns, flags = value
    chains = tuple(map(tuple, bases)), tuple(map(tuple, returns))
    return Definition._make([*plain, *chains, tuple(flags)])
