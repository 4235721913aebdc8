"""The edges of the call graph: which definitions a call means, and how sure that is."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from apps.code.callgraph.facts import MODULE, PROTOTYPE, TYPE, Call, Definition
from apps.code.callgraph.languages import rules_for
from apps.code.callgraph.resolve import Resolver
from apps.code.callgraph.values import Value

# With more definitions of a name, a call on an unknown object is not taken for any of them.
MAX_POSSIBLE = 2


class Target(NamedTuple):
    """A definition that a call may mean."""

    path: str
    number: int  # index in the facts of the file
    proven: bool


def targets(resolver: Resolver, path: str, call: Call) -> list[Target]:
    """The definitions of the repository that a call means, or may mean; empty if it is external."""
    values = resolver.callees(path, call)
    places = dict.fromkeys(_definitions(resolver, values))
    if not rules_for(path).constructs:
        places = {place: None for place in places if _definition(resolver, *place).kind != "class"}
    is_unknown = any(value.kind == "unknown" for value in values)
    if places:
        # Overloads have one name.
        names = {(file, _definition(resolver, file, at).path) for file, at in places}
        return [Target(*place, proven=not is_unknown and len(names) == 1) for place in places]
    name = call.chain[0]
    if not is_unknown or (len(call.chain) == 1 and resolver.is_local(path, call.scope, name)):
        return []
    named = list(possible(resolver, path, call))
    if len(named) > MAX_POSSIBLE:
        return []
    proven = len(named) == 1 and len(call.chain) == 1 and rules_for(path).trusts_unique
    return [Target(*place, proven=proven) for place in named]


def _definition(resolver: Resolver, path: str, number: int) -> Definition:
    facts = resolver.project.facts(path)
    assert facts is not None  # it was found there
    return facts.definitions[number]


def _definitions(resolver: Resolver, values: frozenset[Value]) -> Iterator[tuple[str, int]]:
    for value in sorted(values, key=lambda candidate: (candidate.path, candidate.number)):
        definition = resolver.definition(value)
        if definition is None:
            continue
        is_type = TYPE in definition.flags and definition.kind == "class"
        if is_type and value.kind != "instance":
            continue
        if value.kind == "definition":
            yield value.path, value.number
        elif value.kind == "instance":
            for method in resolver.methods(value, "__call__"):
                yield method.path, method.number


def possible(resolver: Resolver, path: str, call: Call) -> Iterator[tuple[str, int]]:
    """The definitions with the name of a call: methods, if it is called on an object."""
    name, is_member = call.chain[-1], len(call.chain) > 1
    rules = rules_for(path)
    if is_member and name in rules.common:
        return
    for file in resolver.project.defining(name):
        if rules_for(file) is not rules:
            continue
        facts = resolver.project.facts(file)
        every: Sequence[Definition] = facts.definitions if facts else ()
        for index, definition in enumerate(every):
            if (
                definition.name == name
                and PROTOTYPE not in definition.flags
                and is_method(every, definition) == is_member
            ):
                yield file, index


def is_method(every: Sequence[Definition], each: Definition) -> bool:
    """Whether a definition is a member of a type. `every`: the definitions of its file."""
    return bool(each.owner) or (each.scope != MODULE and every[each.scope].kind == "class")


def unresolved(resolver: Resolver, path: str, call: Call) -> bool:
    """Whether a call is on an object that the resolver knows nothing about."""
    values = resolver.callees(path, call)
    return len(call.chain) > 1 and any(value.kind == "unknown" for value in values)


def ancestors(resolver: Resolver, path: str, index: int) -> Iterator[tuple[str, int]]:
    """The methods that a method overrides: a call of one of them may call it."""
    facts = resolver.project.facts(path)
    if facts is None:
        return
    method = facts.definitions[index]
    if method.scope == MODULE or facts.definitions[method.scope].kind != "class":
        return
    owner = Value("super", path, method.scope, Value("instance", path, method.scope))
    for value in resolver.methods(owner, method.name):
        yield value.path, value.number
