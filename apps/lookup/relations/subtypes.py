"""The types below a type, and the methods that override a method, in languages with call rules."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import re2

from apps.code.callgraph.facts import MODULE
from apps.code.callgraph.languages import rules_for
from apps.code.callgraph.values import Value
from apps.lookup.symbols.call_types import Certainty
from apps.lookup.symbols.callers import MAX_FILES
from apps.lookup.symbols.project import Key, RootProject

# Subtypes of subtypes, and how many types of a level are followed.
MAX_LEVELS, MAX_NEXT = 3, 40
BY_METHODS = "Types of Go implement an interface by their methods, which are compared by name."
NOT_ALL = "Not all files and types that may be below it were looked at."
_BRACKETS = re2.compile(r"\([^()]*\)|<[^<>]*>|\[[^\[\]]*\]")
_RUST_IMPL = re2.compile(r"\s*(?:unsafe\s)?impl\b")


class Subtype(NamedTuple):
    """A type or a method below another one."""

    path: str
    row: int  # 0-based
    symbol: str
    of: str
    certainty: Certainty


class Subtypes:
    """The types below those of one root.

    notes: what was not looked at, or how they were found
    """

    def __init__(self, project: RootProject) -> None:
        self.project, self.resolver = project, project.resolver
        self.notes: dict[str, None] = {}

    def owner(self, key: Key) -> Key | None:
        """The type whose method a definition is."""
        around = self.resolver.class_around(key[0], key[1])
        return (around.path, around.number) if around and around.number != MODULE else None

    def types(self, key: Key) -> Iterator[Subtype]:
        """The types that extend or implement a type, also through others."""
        impls = list(self._rust_impls(key)) if key[0].endswith(".rs") else []
        yield from impls
        known = {(impl.path, impl.symbol) for impl in impls}
        for (path, index), (above, certainty) in self._subtypes(key).items():
            definition = self.project.definition((path, index))
            symbol = self.project.known(path).enclosing(index)
            if (path, symbol) not in known:
                of = self.project.definition(above).path
                yield Subtype(path, definition.row, symbol, of, certainty)
        if key[0].endswith(".go"):
            yield from self._go_types(key)

    def overriding(self, key: Key) -> Iterator[tuple[Key, Certainty]]:
        """The methods that override a method, or implement one of an interface or a trait."""
        owner, name = self.owner(key), self.project.definition(key).name
        if owner is None:
            return
        seen = set(self._members(Value("instance", *owner), name)) | {key}
        for type_, certainty in self._objects(owner):
            for member in self._members(type_, name):
                if member not in seen:
                    seen.add(member)
                    yield member, certainty

    def _members(self, type_: Value, name: str) -> list[Key]:
        members = self.resolver.member(type_, name)
        return sorted((one.path, one.number) for one in members if one.kind == "definition")

    def _objects(self, owner: Key) -> Iterator[tuple[Value, Certainty]]:
        """An object of each type below a type."""
        for key, (_, certainty) in self._subtypes(owner).items():
            yield Value("instance", *key), certainty
        by_name: Iterable[Subtype] = ()
        if owner[0].endswith(".rs"):
            by_name = self._rust_impls(owner)
        elif owner[0].endswith(".go"):
            by_name = self._go_types(owner)
        for path, _, symbol, _, certainty in by_name:
            for value in rules_for(path).type_named(self.resolver, path, symbol):
                if value.number != MODULE:
                    yield value._replace(kind="instance"), certainty

    def _subtypes(self, key: Key) -> dict[Key, tuple[Key, Certainty]]:
        """The types below a type, each with the one above it."""
        found: dict[Key, tuple[Key, Certainty]] = {}
        front: list[tuple[Key, Certainty]] = [(key, "proven")]
        for _ in range(MAX_LEVELS):
            following: list[tuple[Key, Certainty]] = []
            if len(front) > MAX_NEXT:
                self.notes[NOT_ALL] = None
            for above, certainty in front[:MAX_NEXT]:
                if self.project.deadline.is_over and found:
                    self.notes[NOT_ALL] = None
                    break
                for below, own in self._direct(above):
                    if below != key and below not in found:
                        both: Certainty = "proven" if own == certainty == "proven" else "possible"
                        found[below] = above, both
                        following.append((below, both))
            front = following
        if front:
            self.notes[NOT_ALL] = None  # there may be some below the last level
        return found

    def _direct(self, key: Key) -> Iterator[tuple[Key, Certainty]]:
        name = self.project.definition(key).name
        for path in self._files(key[0], name):
            facts = self.project.known(path)
            names = {name, *(one.name for one in facts.imports if one.member == name)}
            for index, definition in enumerate(facts.definitions):
                bases = [base for base in definition.bases if not names.isdisjoint(base)]
                certainties = {self._meant(path, definition.scope, base, key) for base in bases}
                if definition.kind == "class" and (path, index) != key and certainties - {None}:
                    yield (path, index), "proven" if "proven" in certainties else "possible"

    def first(self, paths: Sequence[str]) -> Sequence[str]:
        """As many files as are looked at."""
        if len(paths) > MAX_FILES:
            self.notes[NOT_ALL] = None
        return paths[:MAX_FILES]

    def _files(self, path: str, name: str) -> Sequence[str]:
        """The files of the languages of a file that have a name."""
        family = rules_for(path).family
        words = [word for word in re2.findall(r"\w+", name) if word]
        files = dict.fromkeys([path, *(self.project.with_word(words[0]) if words else ())])
        known = [one for one in files if self.project.language(one) in family]
        first = self.first(known)
        self.project.read(first)
        return first

    def _meant(self, path: str, scope: int, base: Sequence[str], key: Key) -> Certainty | None:
        """How sure it is that a base is a type; None if it is another."""
        values = self.resolver.evaluate(path, scope, tuple(base))
        if any((value.path, value.number) == key for value in values):
            return "proven"
        is_unknown = all(value.kind == "unknown" for value in values)
        return "possible" if is_unknown and base[-1] == self.project.definition(key).name else None

    def _rust_impls(self, key: Key) -> Iterator[Subtype]:
        """`impl Trait for Type`, wherever it is."""
        name = self.project.definition(key).name
        for path, text in self.project.lines_in_time(self._files(key[0], name)):
            for row, line in enumerate(text):
                if name in line and _RUST_IMPL.match(line):
                    head = line.partition("impl")[2]
                    trait, is_of_trait, type_ = without_brackets(head).partition(" for ")
                    chain = tuple(part.strip() for part in trait.split("::"))
                    if is_of_trait and chain[-1] == name:
                        certainty = self._meant(path, MODULE, chain, key)
                        if certainty:
                            symbol = type_.partition("{")[0].strip()
                            yield Subtype(path, row, symbol, name, certainty)

    def _go_types(self, key: Key) -> Iterator[Subtype]:
        """The types that have all methods of an interface."""
        members = self.project.known(key[0]).definitions
        methods = {one.name for one in members if one.scope == key[1] and one.kind == "function"}
        owners: set[tuple[str, str]] | None = None
        first: dict[tuple[str, str], tuple[str, int]] = {}
        for method in sorted(methods):
            defining = [path for path in self.project.defining(method) if path.endswith(".go")]
            files = self.first(defining)
            self.project.read(files)
            having: set[tuple[str, str]] = set()
            for path in files:
                for one in self.project.known(path).definitions:
                    if one.name == method and one.owner:
                        owner = (path.rpartition("/")[0], one.owner)
                        having.add(owner)
                        first.setdefault(owner, (path, one.row))
            owners = having if owners is None else owners & having
        if owners:
            self.notes[BY_METHODS] = None
        for folder, owner_name in sorted(owners or ()):
            path, row = self._go_declaration(folder, owner_name) or first[folder, owner_name]
            yield Subtype(path, row, owner_name, self.project.definition(key).name, "possible")

    def _go_declaration(self, folder: str, name: str) -> tuple[str, int] | None:
        for path in self.project.defining(name):
            if path.rpartition("/")[0] == folder:
                for one in self.project.known(path).definitions:
                    if one.name == name and one.kind == "class":
                        return path, one.row
        return None


def without_brackets(text: str) -> str:
    """The text without brackets and what is in them, five levels of them."""
    for _ in range(5):
        shorter = _BRACKETS.sub(" ", text)
        if shorter == text:
            break
        text = shorter
    return text
