"""Collect the facts of a file while its nodes are visited, with a stack of open definitions."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from apps.code.callgraph.facts import (
    ARGUMENT,
    INSTANCE,
    MAX_CHAIN,
    MAX_FACTS,
    MAX_RETURNS,
    MODULE,
    UNKNOWN_CHAIN,
    Binding,
    Call,
    Chain,
    Definition,
    Facts,
    Import,
)

MAX_NAME = 120
# Parts of the path of a definition.
MAX_DEPTH = 8
# A call with more passes no functions whose parameters are known.
MAX_ARGUMENTS = 20
# A node of tree-sitter. The rules of languages are imported without tree-sitter too.
Node = Any


class _Placed(NamedTuple):
    """Where the last node on a line that is not ASCII begins."""

    row: int
    byte: int
    column: int
    line: bytes


class Scopes:
    """The facts so far, and the definitions that are open at the current node."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._indented = -1, 0
        self._placed = _Placed(-1, 0, 0, b"")
        self._stack: list[tuple[int, int]] = []  # (end byte, index)
        self.definitions: list[Definition] = []
        self.bindings: list[Binding] = []
        self.imports: list[Import] = []
        self.calls: list[Call] = []
        self.package = ""
        # Names at module level that are exported only if a later statement says so, and the like:
        # what a language wants to remember during its visits.
        self.notes: dict[Any, Any] = {}

    @property
    def is_full(self) -> bool:
        return (
            len(self.definitions) + len(self.bindings) + len(self.imports) + len(self.calls)
            >= MAX_FACTS
        )

    @property
    def scope(self) -> int:
        """The index of the innermost open definition, or MODULE."""
        return self._stack[-1][1] if self._stack else MODULE

    @property
    def in_class(self) -> bool:
        """Whether the innermost open definition is a class."""
        return bool(self._stack) and self.definitions[self._stack[-1][1]].kind == "class"

    def leave(self, position: int) -> None:
        """Close the definitions that end before a byte position."""
        while self._stack and self._stack[-1][0] <= position:
            self._stack.pop()

    def enter(self, index: int, end: int) -> None:
        """Open a definition again, up to a byte position."""
        self._stack.append((end, index))

    def define(
        self,
        node: Node,
        name_node: Node | None,
        kind: str,
        *,
        name: str = "",
        scope: int | None = None,
        opens: bool = True,
        **fields: Any,
    ) -> int:
        """Add a definition and open it. `fields` are the other fields of Definition."""
        name = name or text(name_node)
        scope = self.scope if scope is None else scope
        owner = fields.get("owner", "")
        path = ".".join(filter(None, (self._path(scope), owner, name))) if name else ""
        start, end = node.start_point, node.end_point
        row, column = self.position(name_node or node)
        self.definitions.append(
            Definition(name, path, kind, start.row, end.row, row, column, scope, **fields)
        )
        index = len(self.definitions) - 1
        if opens:
            self._stack.append((node.end_byte, index))
        return index

    def _path(self, scope: int) -> str:
        names: list[str] = []
        while scope != MODULE and len(names) < MAX_DEPTH:
            definition = self.definitions[scope]
            if definition.name:
                names.append(".".join(filter(None, (definition.owner, definition.name))))
            scope = definition.scope
        return ".".join(reversed(names))

    def bind(
        self,
        node: Node,
        value: Chain,
        *,
        name: str = "",
        scope: int | None = None,
        within: int | None = None,
    ) -> None:
        """Bind a name, in the innermost definition or in `scope`. `within`: see Binding."""
        name, row = name or text(node), node.start_point.row
        target = self.scope if scope is None else scope
        inside = self.scope if within is None else within
        value = value or UNKNOWN_CHAIN
        self.bindings.append(Binding(target, name, row, self.indent(row), inside, value))

    def bind_each(self, node: Node, values: Iterable[Chain]) -> None:
        for value in values:
            self.bind(node, value)

    def add_import(
        self, node: Node, name: str, module: str, member: str = "", *, exported: bool = False
    ) -> None:
        row = node.start_point.row
        self.imports.append(Import(self.scope, name, module, member, row, exported))

    def call(self, name_node: Node, chain: Chain) -> None:
        """Add a call of a chain whose last part is at `name_node`."""
        row, column = self.position(name_node)
        self.calls.append(Call(self.scope, row, column, self.indent(row), chain))

    def returns(self, values: Iterable[Chain], scope: int | None = None) -> None:
        """Add values that the innermost function returns, if it has no annotation."""
        index = self.function() if scope is None else scope
        if index == MODULE or self.notes.get(("annotated", index)):
            return
        definition = self.definitions[index]
        known = tuple(dict.fromkeys([*definition.returns, *values]))
        if len(known) > MAX_RETURNS:
            known = (UNKNOWN_CHAIN,)
        self.definitions[index] = definition._replace(returns=known)

    def function(self) -> int:
        """The innermost open function, or MODULE."""
        for _, index in reversed(self._stack):
            if self.definitions[index].kind != "class":
                return index
        return MODULE

    def enclosing_class(self) -> int:
        """The innermost open class, or MODULE."""
        for _, index in reversed(self._stack):
            if self.definitions[index].kind == "class":
                return index
        return MODULE

    def indent(self, row: int) -> int:
        """Spaces at the beginning of a row. Remembers the last row, as one may be very long."""
        if row != self._indented[0]:
            line = self._lines[row] if row < len(self._lines) else ""
            self._indented = row, len(line) - len(line.lstrip())
        return self._indented[1]

    def position(self, node: Node) -> tuple[int, int]:
        """Row and column in characters, both 0-based."""
        row, byte = node.start_point
        line = self._lines[row] if row < len(self._lines) else ""
        if line.isascii():
            return row, byte
        last = self._placed
        if row != last.row or byte < last.byte:
            encoded = last.line if row == last.row else line.encode()
            last = _Placed(row, 0, 0, encoded)
        # From the last node on, so that a long line is decoded once.
        column = last.column + len(last.line[last.byte : byte].decode("utf-8", "replace"))
        self._placed = _Placed(row, byte, column, last.line)
        return row, column

    def facts(self) -> Facts:
        return Facts(self.definitions, self.bindings, self.imports, self.calls, self.package)


def text(node: Node | None) -> str:
    """The text of a name; "" without one, as in code that does not parse."""
    return str(node.text[: 4 * MAX_NAME].decode("utf-8", "replace"))[:MAX_NAME] if node else ""


def field(node: Node, name: str) -> Any:
    """The child of a node in a field; None if it has none."""
    return node.child_by_field_name(name)


def children(node: Node, name: str) -> list[Any]:
    """The named children of the child in a field; none without one."""
    child = field(node, name)
    return child.named_children if child is not None else []


def passed(called: Chain, function: Node, parameter: int) -> Chain:
    """What a function that is an argument of a call gets as a parameter; unknown if `called`, the
    chain of what is called, is empty."""
    arguments = function.parent
    if not called or arguments.named_child_count > MAX_ARGUMENTS:
        return UNKNOWN_CHAIN
    position = [child.id for child in arguments.named_children].index(function.id)
    return extended(called, f"{ARGUMENT}{position}.{parameter}")


def type_of(value: Chain) -> Chain:
    """The type of an object of a type; another value itself."""
    return value[:-1] if value[-1] == INSTANCE else value


def extended(value: Chain, part: str) -> Chain:
    """A chain with another part; unknown if it is too long already."""
    return (*value, part) if len(value) < MAX_CHAIN else UNKNOWN_CHAIN
