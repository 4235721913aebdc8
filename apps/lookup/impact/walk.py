"""Walks from changed definitions back to what uses them: callers, callers of callers, tests.

Steps come in three kinds. Calls that the resolver proves are followed first; then what has the
name and may mean it: calls on objects of unknown type, functions that are handed on, properties,
fixtures of tests; last of all, from a method to what uses its class. So each definition is reached
in the surest way.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import re2

from apps.code.callgraph.callers import MAX_POSSIBLE, is_method
from apps.code.callgraph.facts import MODULE, Binding, Definition, Facts, Import
from apps.code.callgraph.languages import rules_for
from apps.code.paths import kinds
from apps.lookup.impact.types import Changed
from apps.lookup.impact.words import places_of, row_starts
from apps.lookup.symbols.callers import CallSearch, stem
from apps.lookup.symbols.imports import imported_paths

# Definitions of one answer, and lines above a function that may be its decorators.
MAX_SEEN, MAX_DECORATORS = 3_000, 20
PROVEN, POSSIBLE, OUTER = range(3)
MAX_WIDE = 2  # wide steps of a way: from a method to its class, and to a class that has one of it
_ANNOTATION = re2.compile(r"(?:->|\w\s*:)[^=]*$")
# How names of tests begin, by language. In others, all of a test's file is one.
TEST_NAMES = {"python": ("test", "Test"), "go": ("Test", "Benchmark", "Example", "Fuzz")}
FIXTURES = "conftest.py"


class Node(NamedTuple):
    """A definition, or a name that a file or class binds.

    scope: index of the definition in the facts of the file, or MODULE
    name: what is bound in that scope; "" for the definition itself, and of MODULE the file
    """

    path: str
    scope: int
    name: str = ""


class Step(NamedTuple):
    """A line in `node` that uses `to`."""

    node: Node
    to: Node
    row: int  # 0-based
    proven: bool
    is_wide: bool = False  # leads to all that uses a class, whatever of it is meant


@dataclass
class Walk:
    """The walk in one root.

    came_by: the step from each node towards the change, in the order in which they were found; None
        for what has changed
    is_cut: whether there are more than MAX_SEEN, or the time was over
    """

    search: CallSearch
    came_by: dict[Node, Step | None] = field(default_factory=dict)
    is_cut: bool = False
    _imported: dict[str, set[str]] = field(default_factory=dict)
    _lines: dict[str, Sequence[str]] = field(default_factory=dict)
    _row_starts: dict[str, Sequence[int]] = field(default_factory=dict)  # in characters
    _header_rows: dict[str, frozenset[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.project = self.search.project

    def run(self, starts: Iterable[Node]) -> None:
        """Fill `came_by`."""
        self.came_by = dict.fromkeys(starts)
        waiting: tuple[list[Step], ...] = ([], [], [])
        level = [*self.came_by]
        while level:
            for kind, step in self._steps(level):
                waiting[kind].append(step)
            level = self._new(waiting)
            if len(self.came_by) > MAX_SEEN or (level and self.project.deadline.is_over):
                self.is_cut = True
                return

    def _new(self, waiting: Sequence[list[Step]]) -> list[Node]:
        """The nodes to go on from: those of the surest steps that lead to new ones."""
        for steps in waiting:
            new = []
            for step in steps:
                if step.node not in self.came_by and not self._is_too_wide(step):
                    self.came_by[step.node] = step
                    # Nothing uses a test.
                    new += [] if self.is_test(step.node) else [step.node]
            steps.clear()
            if new:
                return new
        return []

    def _is_too_wide(self, step: Step) -> bool:
        """Whether it is one wide step too many: each class that uses another would lead to all
        tests."""
        return step.is_wide and sum(one.is_wide for one in self.way(step.to)) >= MAX_WIDE

    def way(self, node: Node) -> list[Step]:
        """The steps from a node to the change."""
        steps = []
        while step := self.came_by[node]:
            steps.append(step)
            node = step.to
        return steps

    # --- nodes ------------------------------------------------------------------------------------

    def starts(self, changed: Changed) -> list[Node]:
        """The nodes of a change. A definition that is not ingested has only its name."""
        paths = dict.fromkeys([changed.path, changed.old_path])
        if not changed.symbol:
            return [node for path in paths for node in self._bound(path, changed.rows)]
        nodes = []
        for path in paths:
            facts = self.project.known(path)
            for symbol in dict.fromkeys([changed.symbol, changed.old_symbol]):
                owner, _, name = symbol.rpartition(".")
                same = [n for n, one in enumerate(facts.definitions) if one.path == symbol]
                outer = [n for n, one in enumerate(facts.definitions) if owner == one.path]
                nodes += [Node(path, number) for number in same]
                if not same:
                    nodes.append(Node(path, outer[0] if owner and outer else MODULE, name))
        return nodes

    def _bound(self, path: str, texts: Sequence[str]) -> Iterator[Node]:
        """The names that some lines outside of definitions bind."""
        rows = {row for row, line in enumerate(self._text(path)) if line.rstrip() in texts}
        facts = self.project.known(path)
        items: list[Binding | Import] = [*facts.bindings, *facts.imports]
        for item in items:
            if item.row in rows and item.scope == MODULE and item.name:
                yield Node(path, MODULE, item.name)

    def name(self, node: Node) -> str:
        """The name of what is defined or bound; "" for a file."""
        return node.name or (self._definition(node).name if node.scope != MODULE else "")

    def _definition(self, node: Node) -> Definition:
        return self.project.definition((node.path, node.scope))

    def _is_member(self, node: Node) -> bool:
        if node.scope == MODULE:
            return False
        return bool(node.name) or is_method(
            self.project.known(node.path).definitions, self._definition(node)
        )

    def symbol(self, node: Node) -> str:
        """The path of the definition; "" for a file."""
        outer = self._definition(node).path if node.scope != MODULE else ""
        return ".".join(filter(None, [outer, node.name]))

    def is_test(self, node: Node) -> bool:
        """Whether a node is a test itself, and not what tests share."""
        if "test" not in kinds(node.path):
            return False
        names = TEST_NAMES.get(self.project.language(node.path))
        if names is None:
            return not node.name
        return any(part.startswith(names) for part in self.symbol(node).split("."))

    def is_in_tests(self, node: Node) -> bool:
        return "test" in kinds(node.path)

    def only_imports(self, step: Step) -> bool:
        """Whether the line of a step imports a name, and is in no definition."""
        imports = self.project.known(step.node.path).imports
        return step.node.scope == MODULE and any(one.row == step.row for one in imports)

    def lines_of(self, node: Node) -> Sequence[str]:
        """The lines of a definition, with its decorators; of a file, all."""
        lines = self._text(node.path)
        if node.scope == MODULE:
            return lines
        definition = self._definition(node)
        return lines[definition.first : definition.last + 1]

    def text_at(self, path: str, row: int) -> str:
        lines = self._text(path)
        return lines[row].strip() if row < len(lines) else ""

    def _text(self, path: str) -> Sequence[str]:
        if path not in self._lines:
            self._lines[path] = self.project.lines(path) or ()
        return self._lines[path]

    # --- steps ------------------------------------------------------------------------------------

    def _steps(self, level: Sequence[Node]) -> Iterator[tuple[int, Step]]:
        keys = {(node.path, node.scope): node for node in level if not node.name}
        definitions = [key for key in keys if key[1] != MODULE]
        for site in self.search.sites(definitions) if definitions else ():
            to = keys.get(site.callee) or self._meant(site.callee, definitions)
            node = self._node(site.path, site.call.row, site.call.scope)
            kind = PROVEN if site.proven else POSSIBLE
            yield kind, Step(node, to, site.call.row, site.proven)
        naming: dict[str, list[Node]] = {}
        for node in level:
            if self.project.deadline.is_over:
                return
            yield from ((POSSIBLE, step) for step in self._offered(node))
            yield from self._outer(node)
            for path in self._naming(node):
                naming.setdefault(path, []).append(node)
        for path, nodes in naming.items():
            if self.project.deadline.is_over:
                return
            yield from ((POSSIBLE, step) for step in self._mentions(path, nodes))

    def _meant(self, callee: tuple[str, int], keys: Sequence[tuple[str, int]]) -> Node:
        """The definition that is meant by a call of its class, or of what it overrides."""
        name = self.project.definition(callee).name
        for key in keys:
            one = self.project.definition(key)
            if one.name == name or (key[0], one.scope) == callee:
                return Node(*key)
        return Node(*keys[0])

    def _outer(self, node: Node) -> Iterator[tuple[int, Step]]:
        """From what is inside of a function to the function, from a member to its class."""
        facts = self.project.known(node.path)
        if node.scope == MODULE:
            return
        definition = facts.definitions[node.scope]
        outer = node.scope if node.name else facts.named_scope(definition.scope)
        if outer == MODULE:
            return
        is_class = facts.definitions[outer].kind != "function"
        is_early = not is_class or _is_special(definition.name)
        step = Step(Node(node.path, outer), node, definition.row, False, is_class)
        yield (POSSIBLE if is_early else OUTER), step

    def _naming(self, node: Node) -> Iterator[str]:
        """The files whose lines may name a node."""
        name = self.name(node)
        if not may_be_named(name):
            return
        is_rare = self._is_member(node) and len(self.project.defining(name)) <= MAX_POSSIBLE
        family = rules_for(node.path).family
        for path in self.project.with_word(name):
            if self.project.language(path) not in family or not self._takes(path):
                continue
            if is_rare or self._is_near(path, node.path):
                yield path

    def _mentions(self, path: str, nodes: Sequence[Node]) -> Iterator[Step]:
        """The lines of a file that have the name of a node and may mean it, apart from resolved
        calls."""
        facts = self.project.known(path)
        calls = {(call.row, call.column) for call in facts.calls}
        for node in nodes:
            for row, column in self._places(path, self.name(node)):
                # Of a definition, the resolver knows which calls mean it.
                if node.name or (row, column) not in calls:
                    yield from self._mention(node, path, row, self._text(path)[row][:column])

    def _places(self, path: str, name: str) -> Iterator[tuple[int, int]]:
        """The rows and columns where a file has a name as a whole word."""
        if path not in self._row_starts:
            self._row_starts[path] = row_starts(self._text(path))
        return places_of(name, self.project.text(path) or "", self._row_starts[path])

    def _mention(self, node: Node, path: str, row: int, before: str) -> Iterator[Step]:
        """The step from the line of a name. before: the text in front of it"""
        if self._is_member(node) and not before.endswith("."):
            return
        if path == node.path and not node.name and row == self._definition(node).row:
            return
        if row in self._headers(path) and _ANNOTATION.search(before):
            return
        user = self._node(path, row, MODULE, self.name(node))
        yield Step(user, node, row, False, self._is_in_body(user, row))

    def _is_in_body(self, node: Node, row: int) -> bool:
        """Whether a line is one of a class, and not of its methods or the names of its bases."""
        if node.scope == MODULE or node.name:
            return False
        definition = self._definition(node)
        return definition.kind == "class" and row != definition.row

    def _headers(self, path: str) -> frozenset[int]:
        """The lines with the parameters of Python's functions, whose annotations are no uses."""
        if path not in self._header_rows:
            rows: set[int] = set()
            lines = self._text(path) if path.endswith((".py", ".pyi")) else ()
            for one in self.project.known(path).definitions if lines else ():
                if one.kind == "function":
                    last = one.row
                    while last < one.last and not lines[last].rstrip().endswith(":"):
                        last += 1
                    rows.update(range(one.row, last + 1))
            self._header_rows[path] = frozenset(rows)
        return self._header_rows[path]

    def _node(self, path: str, row: int, scope: int, name: str = "") -> Node:
        """The definition that has a line; else the name that the statement binds; else the file."""
        facts = self.project.known(path)
        scope = facts.named_scope(scope)
        if scope == MODULE:
            scope = facts.around(row)
        if scope == MODULE:
            scope = self._decorated(path, facts.definitions, row)
        if scope != MODULE:
            return Node(path, self._test_around(path, facts, scope))
        if any(one.row == row and one.name == name for one in facts.imports):
            return Node(path, MODULE, name)
        before = [one for one in facts.bindings if one.scope == MODULE and one.row <= row]
        last = max(before, key=lambda one: one.row, default=None)
        ends = [one.last for one in facts.definitions if one.last < row]
        if last is None or max(ends, default=-1) > last.row:
            return Node(path, MODULE)
        is_inside = last.row == row or self._text(path)[row][:1].isspace()
        return Node(path, MODULE, last.name if is_inside else "")

    def _test_around(self, path: str, facts: Facts, scope: int) -> int:
        """The test that has a definition inside of it; else the definition."""
        names = TEST_NAMES.get(self.project.language(path), ())
        above = scope
        while names and above != MODULE and "test" in kinds(path):
            one = facts.definitions[above]
            if one.kind == "function" and one.name.startswith(names):
                return above
            above = one.scope
        return scope

    def _decorated(self, path: str, definitions: Sequence[Definition], row: int) -> int:
        """The definition below a line of decorators, or MODULE."""
        if not self._text(path)[row].lstrip().startswith("@"):
            return MODULE
        below = [
            (one.first, number)
            for number, one in enumerate(definitions)
            if one.name and row < one.first <= row + MAX_DECORATORS
        ]
        return min(below)[1] if below else MODULE

    def _offered(self, node: Node) -> Iterator[Step]:
        """Files that import all names of the file, and offer them to others."""
        name = self.name(node)
        is_own = node.scope != MODULE and not node.name
        outer = self._definition(node).scope if is_own else node.scope
        if outer != MODULE or not may_be_named(name):
            return
        for path in self.project.with_word(stem(node.path).split(".")[0]):
            if path == node.path or not self._is_near(path, node.path):
                continue
            for imported in self.project.known(path).imports:
                if imported.name == "*":
                    yield Step(Node(path, MODULE, name), node, imported.row, proven=False)

    def _is_near(self, path: str, target: str) -> bool:
        """Whether a file sees the names of another: by an import, or as fixtures of its tests."""
        if path == target:
            return True
        folder, _, name = target.rpartition("/")
        if name == FIXTURES and path.startswith(f"{folder}/" if folder else ""):
            return True
        if path not in self._imported:
            lists = imported_paths(self.project, path)
            self._imported[path] = {file for files in lists for file in files}
        return target in self._imported[path]

    def _takes(self, path: str) -> bool:
        return self.search.query.takes(self.project.root, path, self.project.language(path))


def may_be_named(name: str) -> bool:
    """Whether lines with a name tell who uses it."""
    return len(name) > 1 and not _is_special(name)


def _is_special(name: str) -> bool:
    """Whether Python calls a method itself."""
    return name.startswith("__") and name.endswith("__")
