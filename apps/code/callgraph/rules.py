"""What a language has to say about its names: the class that each language extends."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from apps.code.callgraph.facts import Definition, Import
from apps.code.callgraph.project import Project
from apps.code.callgraph.scopes import Scopes
from apps.code.callgraph.values import UNKNOWN_VALUES, Value, Values


class Names(Protocol):
    """The resolver, as rules see it."""

    @property
    def project(self) -> Project: ...

    def module_names(self, path: str, name: str) -> Values:
        """What a name means at the top level of a file; empty if the file does not have it."""

    def global_name(self, path: str, name: str) -> Values:
        """`Rules.global_name` of a file, which may ask for it again: circles end."""

    def member(self, value: Value, name: str) -> Values: ...

    def union(self, groups: Any) -> Values: ...

    def defined(self, path: str, name: str, wanted: Callable[[Definition], bool]) -> Values:
        """The definitions of a file with a name, in any scope, that pass."""


def star_imports(project: Project, path: str) -> Sequence[Import]:
    """The imports by which a file has all names of a module."""
    facts = project.facts(path)
    return [import_ for import_ in facts.imports if import_.name == "*"] if facts else ()


class Rules:
    """The rules of one language."""

    # Languages whose definitions may call each other
    family: frozenset[str] = frozenset()
    # What adds the facts of a node, by its type. Called in the order of positions, outer nodes
    # first. A grammar need not have all types.
    visits: Mapping[str, Callable[[Scopes, Any], None]] = MappingProxyType({})
    # Types of nodes that are visited in one grammar only
    only_in: Mapping[str, str] = MappingProxyType({})
    # Whether code in a class sees its members by their bare name.
    sees_members = False
    # Whether a call of a name that nothing defines calls the only definition of that name.
    trusts_unique = False
    # Whether a call of a type makes an object. Otherwise it converts a value, and is no call.
    constructs = True
    # Methods of built-in types: a call on an unknown object is not taken for one of the repository.
    common: frozenset[str] = frozenset()

    def open_page(self, scopes: Scopes, page: Any) -> None:
        """Add the facts of a page with code. Called before the visits of its code."""

    def global_name(self, names: Names, path: str, name: str) -> Values:
        """What a name means that no scope of its file defines."""
        return UNKNOWN_VALUES

    def outer_self(self, path: str) -> Values:
        """What the word for the own object means outside of all types."""
        return UNKNOWN_VALUES

    def imported(self, names: Names, path: str, each: Import) -> Values:
        """What an import makes of its name."""
        return UNKNOWN_VALUES

    def module_member(self, names: Names, module: Value, name: str) -> Values:
        """A member of a module, which is a file unless the language says otherwise."""
        return names.module_names(module.path, name) or UNKNOWN_VALUES

    def type_named(self, names: Names, path: str, name: str) -> Values:
        """The type of an owner that a file names."""
        return names.module_names(path, name)

    def outside_members(
        self, names: Names, owner: Value, definition: Definition, name: str
    ) -> Values:
        """Members of a type that are defined outside of it."""
        return frozenset()

    def other_names(self, project: Project, path: str) -> Iterator[str]:
        """Names by which imports may mean a file, beside its own."""
        return iter(())

    def import_paths(self, project: Project, path: str, each: Import) -> Sequence[str]:
        """The files that an import means; empty if it is external or unknown."""
        return ()
