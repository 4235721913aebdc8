"""Follow the names of an expression across files, to the definitions that they mean."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from apps.code.callgraph.containers import container_member, reaching
from apps.code.callgraph.facts import (
    ARGUMENT,
    CALL,
    CLASS,
    CONTAINER,
    ELEMENT,
    INSTANCE,
    LITERAL,
    LOCAL,
    MADE,
    MEMBER,
    MODULE,
    PROPERTY,
    PROTOTYPE,
    SELF,
    SUPER,
    TYPE_PARAMETER,
    UNKNOWN,
    Binding,
    Call,
    Chain,
    Definition,
    Import,
    Item,
)
from apps.code.callgraph.languages import rules_for
from apps.code.callgraph.project import Project
from apps.code.callgraph.values import (
    EXTERNAL_VALUES,
    NO_VALUES,
    UNKNOWN_VALUES,
    Value,
    Values,
    bound_to,
    known,
    only,
    ordered,
)

# Limits of one call: names that are followed, and how deep. Beyond, a value is unknown.
MAX_STEPS = 3_000
MAX_DEPTH = 40
MAX_VALUES = 8
ANYWHERE = 1 << 30  # a row after all others


class Resolver:
    """Resolves names in one repository. Not thread-safe; caches what it finds."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._steps = 0
        self._active: set[object] = set()
        self._cache: dict[object, Values] = {}
        self._cuts = 0  # how often a limit or a circle has made a value unknown

    def callees(self, path: str, call: Call) -> Values:
        """What a call calls: definitions, or unknown and external values."""
        self._steps = 0
        return self.evaluate(path, call.scope, call.chain, call.row, call.indent)

    def evaluate(
        self,
        path: str,
        scope: int,
        chain: Chain,
        row: int = ANYWHERE,
        indent: int = ANYWHERE,
        receiver: Value | None = None,
    ) -> Values:
        """The values of a chain where it is written.

        row, indent: of the place; in the same function, earlier bindings count only
        receiver: what SELF means; None: an object of the enclosing class
        """

        def follow() -> Values:
            values = self._root(path, scope, chain[0], row, indent, receiver)
            for part in chain[1:]:
                if part == INSTANCE:
                    values = self._types(values)
                values = self.union(self._apply(value, part) for value in ordered(values))
            return values

        return self._guarded((path, scope, chain, row, indent, receiver), follow)

    def _types(self, values: Values) -> Values:
        """The types among some values, if any: a type and a variable may have one name."""
        return frozenset(value for value in values if self._is_class(value)) or values

    def _is_class(self, value: Value) -> bool:
        definition = self.definition(value) if value.kind == "definition" else None
        return definition is not None and definition.kind == "class"

    def union(self, groups: Iterable[Values]) -> Values:
        values = NO_VALUES.union(*groups)
        return values if len(values) <= MAX_VALUES else UNKNOWN_VALUES

    def _guarded(self, key: object, follow: Callable[[], Values]) -> Values:
        """Cache a result, and end circles. What a circle or a limit has cut is not cached."""
        if key in self._cache:
            return self._cache[key]
        with self._entering(key) as may:
            if not may:
                return UNKNOWN_VALUES
            cuts = self._cuts
            values = follow()
            if cuts == self._cuts:
                self._cache[key] = values
            return values

    @contextmanager
    def _entering(self, key: object) -> Iterator[bool]:
        self._steps += 1
        if key in self._active or len(self._active) >= MAX_DEPTH or self._steps > MAX_STEPS:
            self._cuts += 1
            yield False
            return
        self._active.add(key)
        try:
            yield True
        finally:
            self._active.discard(key)

    # --- names ------------------------------------------------------------------------------------

    def _root(
        self, path: str, scope: int, name: str, row: int, indent: int, receiver: Value | None
    ) -> Values:
        if name == UNKNOWN:
            return UNKNOWN_VALUES
        if name == LITERAL:
            return EXTERNAL_VALUES
        if name in (SELF, CLASS, SUPER):
            return self._self(path, scope, name, receiver)
        if name.startswith(LOCAL):
            return only(Value("definition", path, int(name[len(LOCAL) :])))
        return self._lookup(path, scope, name, row, indent, receiver)

    def _lookup(
        self, path: str, scope: int, name: str, row: int, indent: int, receiver: Value | None
    ) -> Values:
        """What a name means in a scope, or in those around it."""
        rules, start, facts = rules_for(path), scope, self.project.facts(path)
        while facts is not None:
            items = facts.names.get((scope, name), [])
            if scope != MODULE and (definition := facts.definitions[scope]).kind == "class":
                if rules.sees_members and (members := self._own_member(path, scope, name)):
                    return members
                bound = facts.names.get((scope, TYPE_PARAMETER.format(name)), [])
                items = items if scope == start else bound
            elif scope != MODULE and definition.owner and rules.sees_members and not items:
                members = self._owner_member(path, definition.owner, name)
                if members:
                    return members
            if items:
                if scope == start:
                    items = reaching(items, row, indent)
                return self._of_items(path, items, receiver)
            if scope == MODULE:
                return self.global_name(path, name)
            scope = facts.definitions[scope].scope
        return UNKNOWN_VALUES

    def _own_member(self, path: str, index: int, name: str) -> Values:
        """The member of an enclosing class; empty if it is not known to have one."""
        return known(self.member(Value("instance", path, index), name))

    def _owner_member(self, path: str, owner: str, name: str) -> Values:
        groups = (
            self._own_member(type_.path, type_.number, name)
            for type_ in ordered(rules_for(path).type_named(self, path, owner))
            if type_.number != MODULE
        )
        return self.union(groups)

    def module_names(self, path: str, name: str) -> Values:
        """What a name means at the top level of a file; empty if the file does not have it."""
        return self._of_items(path, self._named(path, MODULE, name), None)

    def _named(self, path: str, scope: int, name: str) -> Sequence[Item]:
        """What has a name in a scope of a file."""
        facts = self.project.facts(path)
        return facts.names.get((scope, name), ()) if facts else ()

    def defined(self, path: str, name: str, wanted: Callable[[Definition], bool]) -> Values:
        """The definitions of a file with a name, in any scope, that pass."""
        facts = self.project.facts(path)
        return frozenset(
            Value("definition", path, index)
            for index, definition in enumerate(facts.definitions if facts else ())
            if definition.name == name and wanted(definition)
        )

    def _of_items(self, path: str, items: Iterable[Item], receiver: Value | None) -> Values:
        return self.union(self._of_item(path, item, receiver) for item in items)

    def _of_item(self, path: str, item: Item, receiver: Value | None) -> Values:
        if isinstance(item, Import):
            look_up = partial(rules_for(path).imported, self, path, item)
            return self._guarded(("import", path, item), look_up)
        if isinstance(item, Binding):
            row, indent = item.row - 1, item.indent
            if item.value and item.value[0] != item.name:
                row = item.row
            return self.evaluate(path, item.within, item.value, row, indent, receiver)
        facts = self.project.facts(path)
        return only(Value("definition", path, facts.index_of[id(item)])) if facts else NO_VALUES

    def is_local(self, path: str, scope: int, name: str) -> bool:
        """Whether a file binds a name in a scope or around it."""
        facts = self.project.facts(path)
        while facts is not None and (scope, name) not in facts.names:
            if scope == MODULE:
                return False
            scope = facts.definitions[scope].scope
        return facts is not None

    # --- objects ----------------------------------------------------------------------------------

    def _self(self, path: str, scope: int, name: str, receiver: Value | None) -> Values:
        owner = self.class_around(path, scope)
        if owner is None:
            return rules_for(path).outer_self(path) if name == SELF else UNKNOWN_VALUES
        if name == SUPER:
            return only(owner._replace(kind="super", receiver=receiver or owner))
        return only((receiver or owner)._replace(kind="instance" if name == SELF else "definition"))

    def class_around(self, path: str, scope: int) -> Value | None:
        """An instance of the class whose code a scope is part of."""
        facts = self.project.facts(path)
        while facts and scope != MODULE:
            definition = facts.definitions[scope]
            if definition.kind == "class":
                return Value("instance", path, scope)
            if definition.owner:
                values = rules_for(path).type_named(self, path, definition.owner)
                types = [value for value in ordered(values) if value.number != MODULE]
                return types[0]._replace(kind="instance") if types else None
            scope = definition.scope
        return None

    def definition(self, value: Value) -> Definition | None:
        """The definition of a value; of an instance, its class."""
        facts = self.project.facts(value.path) if value.number != MODULE else None
        return facts.definitions[value.number] if facts else None

    def _apply(self, value: Value, part: str) -> Values:
        if part == CONTAINER:
            return only(Value("container", receiver=value))
        if value.kind in ("unknown", "external"):
            return only(value)
        if part == CALL:
            return self._called(value)
        if part.startswith(ARGUMENT):
            return self._passed(value, part)
        if part == INSTANCE:
            return self._instance_of(value)
        return self._element(value) if part == ELEMENT else self.member(value, part)

    def _instance_of(self, value: Value) -> Values:
        if self._is_class(value):
            return only(Value("instance", value.path, value.number))
        return only(value) if value.kind in ("container", "instance") else UNKNOWN_VALUES

    def _element(self, value: Value) -> Values:
        if value.kind == "container" and value.receiver:
            return only(value.receiver)
        if value.kind == "definition":  # List[int] is List
            return only(value)
        if items := self._named(value.path, value.number, ELEMENT):
            return self._of_items(value.path, items, None)
        for name in ("__getitem__", "__iter__"):
            if methods := self.methods(value, name):
                return self.union(map(self._called, methods))
        return UNKNOWN_VALUES

    def methods(self, value: Value, name: str) -> list[Value]:
        """The members of a value with this name that are definitions."""
        members = ordered(self.member(value, name))
        return [member for member in members if member.kind == "definition"]

    def _called(self, value: Value) -> Values:
        """What a call of a known value returns."""
        if value.kind == "method" and value.receiver:
            return only(value.receiver)
        definition = self.definition(value)
        if definition is None:
            return UNKNOWN_VALUES
        if value.kind == "instance":
            return self.union(map(self._called, self.methods(value, "__call__"))) or UNKNOWN_VALUES
        if definition.kind == "class":
            return only(Value("instance", value.path, value.number))
        returned = partial(self.evaluate, value.path, value.number, receiver=value.receiver)
        return self.union(map(returned, definition.returns)) or UNKNOWN_VALUES

    def _passed(self, value: Value, part: str) -> Values:
        """What a function gives to the function that is an argument of its call."""
        if value.kind == "each" and value.receiver:
            return self._element(value.receiver) if part == f"{ARGUMENT}0.0" else UNKNOWN_VALUES
        definition = self.definition(value)
        if definition is None:
            return UNKNOWN_VALUES
        if definition.kind == "class":
            methods = self.methods(value._replace(kind="instance"), "constructor")
            return self.union(self._passed(method, part) for method in methods)
        items = self._named(value.path, value.number, part)
        return self._of_items(value.path, items, value.receiver) if items else UNKNOWN_VALUES

    def global_name(self, path: str, name: str) -> Values:
        """What a name means that no scope of its file defines."""
        look_up = partial(rules_for(path).global_name, self, path, name)
        return self._guarded(("global", path, name), look_up)

    def member(self, value: Value, name: str) -> Values:
        """The member of a value with this name."""
        if value.kind in ("unknown", "external"):
            return only(value)
        key = ("member", value, name)
        if value.kind == "module":
            look_up = partial(rules_for(value.path).module_member, self, value, name)
            return self._guarded(key, look_up)
        if value.kind == "container":
            return container_member(value, name)
        definition = self.definition(value)
        if definition is None:
            return UNKNOWN_VALUES
        if MADE in definition.flags:
            values = self.evaluate(value.path, definition.scope, definition.returns[0][:-1])
            return self.union(self.member(one, name) for one in ordered(values))
        if definition.kind != "class":
            items = self._named(value.path, value.number, name)
            items = items or self._named(value.path, value.number, MEMBER.format(name))
            return self._of_items(value.path, items, None) or UNKNOWN_VALUES
        return self._guarded(key, lambda: self._class_member(value, definition, name))

    def _class_member(self, value: Value, definition: Definition, name: str) -> Values:
        """The member of a class, its own first, then those of its bases."""
        if value.kind == "super":
            return self._inherited(value, definition, name, value.receiver)
        items = self._named(value.path, value.number, name)
        if all(isinstance(item, Definition) and PROTOTYPE in item.flags for item in items):
            outside = rules_for(value.path).outside_members(self, value, definition, name)
            if outside:
                return self._bound(outside, value, ())
        if items:
            return self._bound(self._of_items(value.path, items, value), value, items)
        return self._inherited(value, definition, name, value)

    def _bound(self, values: Values, receiver: Value, items: Iterable[Item]) -> Values:
        """Methods with the object that they are called on; properties as the value they have."""
        members: set[Value] = set()
        methods = {item.row for item in items if isinstance(item, Definition)}
        for value in ordered(values):
            definition = self.definition(value)
            if value.kind != "definition" or definition is None or definition.kind == "class":
                members.add(value)
                continue
            bound = bound_to(value, receiver)
            if PROPERTY in definition.flags and definition.row in methods:
                members |= self._called(bound)
            else:
                members.add(bound)
        return frozenset(members)

    def _inherited(
        self, value: Value, definition: Definition, name: str, receiver: Value | None
    ) -> Values:
        is_external = bool(definition.bases)
        for base in definition.bases:
            members = NO_VALUES
            for ancestor in ordered(self.evaluate(value.path, definition.scope, base)):
                if not self._is_class(ancestor):
                    is_external = is_external and ancestor.kind == "external"
                    continue
                inherited = self.member(Value("instance", ancestor.path, ancestor.number), name)
                members |= inherited if known(inherited) else NO_VALUES
                is_external = inherited == EXTERNAL_VALUES
            if members:
                return frozenset(bound_to(v, receiver) for v in members)
        return EXTERNAL_VALUES if is_external else UNKNOWN_VALUES
