"""Find what a definition calls, and how it calls another through others."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from apps.code.callgraph.callers import targets
from apps.code.callgraph.facts import MODULE, Call, Facts
from apps.lookup.deadline import Deadline
from apps.lookup.relations.subtypes import Subtypes
from apps.lookup.relations.types import Relation, Relations, Scope, line_at
from apps.lookup.symbols.call_types import CallersQuery
from apps.lookup.symbols.callers import wanted_definitions
from apps.lookup.symbols.project import Key, RootProject
from apps.lookup.symbols.types import SymbolQuery
from apps.retrieval.query import is_inside

# Calls of a way, and definitions that are looked at.
MAX_CALLS, MAX_SEEN = 8, 1_500
NOT_ALL = "Not all calls were looked at: {} may be reached in another way."


@dataclass(frozen=True)
class _Step:
    """A call of a way."""

    caller: Key
    call: Call
    callee: Key
    proven: bool


@dataclass
class _Walk:
    """The search in one root."""

    project: RootProject
    came_by: dict[Key, _Step | None] = field(default_factory=dict)
    is_cut: bool = False
    _below: dict[Key, Sequence[Key]] = field(default_factory=dict)  # overriding methods

    def __post_init__(self) -> None:
        self.subtypes = Subtypes(self.project)

    def way(self, starts: Sequence[Key], ends: set[Key], *, proven: bool) -> list[_Step]:
        """The shortest way, [] if there is none. proven: through proven calls only"""
        self.came_by = dict.fromkeys(starts)
        waiting = deque((key, 0) for key in starts)
        while waiting:
            key, depth = waiting.popleft()
            for step in self.calls(key, with_overriding=not proven):
                if step.callee in self.came_by or (proven and not step.proven):
                    continue
                self.came_by[step.callee] = step
                if step.callee in ends:
                    return self._back(step)
                if depth + 1 < MAX_CALLS:
                    waiting.append((step.callee, depth + 1))
            if len(self.came_by) > MAX_SEEN or self.project.deadline.is_over:
                self.is_cut = True
                break
        return []

    def members(self, key: Key) -> Iterator[Key]:
        """The definitions directly inside of one: a way to a class ends at any of its methods."""
        for index, definition in enumerate(self.project.known(key[0]).definitions):
            if definition.scope == key[1] and definition.name:
                yield key[0], index

    def _back(self, last: _Step) -> list[_Step]:
        steps = [last]
        while step := self.came_by[steps[-1].caller]:
            steps.append(step)
        return steps[::-1]

    def calls(self, key: Key, *, with_overriding: bool = False) -> Iterator[_Step]:
        """The calls in a definition, and in those without a name and methods inside of it.
        with_overriding: also the methods that may be meant because they override the called one"""
        path, index = key
        facts = self.project.known(path)
        for call in facts.calls:
            if self._is_within(facts, call.scope, index):
                for target in targets(self.project.resolver, path, call):
                    callee = (target.path, target.number)
                    yield _Step(key, call, callee, target.proven)
                    for method in self._overriding(callee) if with_overriding else ():
                        yield _Step(key, call, method, proven=False)

    def _overriding(self, key: Key) -> Sequence[Key]:
        if key not in self._below:
            self._below[key] = [method for method, _ in self.subtypes.overriding(key)]
        return self._below[key]

    def _is_within(self, facts: Facts, scope: int, index: int) -> bool:
        while scope != MODULE and scope != index:
            scope = facts.definitions[scope].scope
        return scope == index

    def rows(self, steps: Sequence[_Step]) -> Iterator[Relation]:
        lines = self.project.lines_of({step.caller[0] for step in steps})
        for step in steps:
            path, line = step.caller[0], step.call.row + 1
            yield Relation(
                "step",
                self.project.place(path),
                line,
                line_at(lines.get(path, ()), line),
                self.project.known(path).enclosing(step.call.scope) or self._named(step.caller),
                self._named(step.callee),
                "proven" if step.proven else "possible",
            )

    def _named(self, key: Key) -> str:
        return self.project.definition(key).path


def call_path(start: SymbolQuery, end: SymbolQuery, deadline: Deadline) -> Relations:
    """The calls that lead from one definition to another, in their order: a shortest way of proven
    calls, otherwise one with possible calls. In the first repository that has one; no rows if none
    has.

    Raises Conflict INGEST_REQUIRED and NotFound REPO_NOT_FOUND.
    """
    cut = False
    found: list[Relation] = []

    def in_root(project: RootProject, scope: Scope) -> list[Relation]:
        nonlocal cut
        starts = _inside(project, wanted_definitions(project, CallersQuery(start)), scope)
        ends = set(_inside(project, wanted_definitions(project, CallersQuery(end)), scope))
        if found or not starts or not ends:
            return []
        walk = _Walk(project)
        ends |= {member for key in ends for member in walk.members(key)}
        steps = walk.way(starts, ends, proven=True) or walk.way(starts, ends, proven=False)
        cut = cut or walk.is_cut or bool(deadline.unread)
        rows = list(walk.rows(steps))
        if all(is_inside(scope.filters.areas, project.root, row.place.path) for row in rows):
            found.extend(rows)
        return found

    Scope(start.repositories, start.filters).collect(deadline, in_root)
    return Relations(tuple(found), NOT_ALL.format(end.name) if cut and not found else "")


def calls_of(query: SymbolQuery, deadline: Deadline) -> Relations:
    """The calls in a definition that mean definitions of its repository, in the order of their
    lines, one for each line and definition. Raises as `call_path`."""

    def in_root(project: RootProject, scope: Scope) -> Iterator[Relation]:
        walk = _Walk(project)
        keys = _inside(project, wanted_definitions(project, CallersQuery(query)), scope)
        steps = [step for key in keys for step in walk.calls(key) if step.callee != key]
        steps.sort(key=lambda step: (step.caller, step.call.row, step.call.column))
        return walk.rows(steps)

    rows = Scope(query.repositories, query.filters).collect(deadline, in_root)
    distinct = {(*row.spot, row.of): row for row in rows}
    return Relations(tuple(distinct.values())[: query.limit])


def _inside(project: RootProject, keys: Sequence[Key], scope: Scope) -> list[Key]:
    return [key for key in keys if is_inside(scope.filters.areas, project.root, key[0])]
