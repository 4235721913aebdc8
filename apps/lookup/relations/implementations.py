"""Find the types that extend or implement a type, and the methods that override a method."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import re2

from apps.code.callgraph.facts import MODULE, Definition, Facts
from apps.code.callgraph.languages import BY_LANGUAGE, rules_for
from apps.code.callgraph.resolve import Resolver
from apps.code.paths import kinds
from apps.index.models import Root
from apps.index.symbols import outline_of
from apps.index.types import Filters, StoredSymbol
from apps.lookup.deadline import Deadline
from apps.lookup.marking import marked
from apps.lookup.relations.types import SECONDS, Relation, Relations, Scope, one_line
from apps.lookup.symbols.call_types import CallersQuery, Certainty
from apps.lookup.symbols.callers import MAX_FILES, Key, wanted_definitions, with_word
from apps.lookup.symbols.definitions import LAST_FILES, matching
from apps.lookup.symbols.project import PARSE_SECONDS, RootProject
from apps.lookup.symbols.types import Place, SymbolQuery, degraded_wire, page_wire
from apps.retrieval.paging import Page, Pager
from apps.retrieval.repositories import repo_id, roots_named

# Subtypes of subtypes, and how many types of a level are followed.
MAX_LEVELS, MAX_NEXT = 3, 40
# Rows of all pages.
MAX_ROWS = 5_000
TYPE_KINDS = frozenset(
    {"class", "interface", "struct", "trait", "protocol", "enum", "record", "object", "module"}
)
BY_METHODS = "Types of Go implement an interface by their methods, which are compared by name."
NOT_ALL = "Not all files and types that may be below it were looked at."
BY_TEXT = "In {}, declarations are read as text."
# Of a declaration: what is in brackets, and where its supertypes begin.
_BRACKETS = re2.compile(r"\([^()]*\)|<[^<>]*>|\[[^\[\]]*\]")
_HERITAGE = re2.compile(
    r"(?:^|[^:]):(?:[^:]|$)|<|\b(?:extends|implements|inherits|with|conforms|deriving)\b"
)
_RUST_IMPL = re2.compile(r"\s*(?:unsafe\s)?impl\b")


@dataclass(frozen=True)
class Implementations:
    """A page of implementations."""

    name: str  # as in the query
    results: tuple[Relation, ...]
    note: str  # what was not looked at, or how they were found
    page: Page
    degraded: str = ""  # as in SearchResult

    def as_wire(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "results": [row.as_wire() for row in self.results],
            "truncated": self.page.more,
            **({"notes": self.note} if self.note else {}),
            **degraded_wire(self.degraded),
            **page_wire(self.page),
        }


class _Subtype(NamedTuple):
    path: str
    row: int  # 0-based
    symbol: str
    of: str
    certainty: Certainty


@marked
def find_implementations(query: SymbolQuery) -> Implementations:
    """A page of what `implementations_of` finds.

    Raises InvalidInput CURSOR_INVALID and Conflict CURSOR_EXPIRED, and as `implementations_of`.
    """
    pager = Pager.of("implementations", query, roots_named(query.repositories))
    until = Deadline(PARSE_SECONDS)
    found = implementations_of(replace(query, limit=MAX_ROWS, cursor=None), until)
    rows, page = pager.page(found.rows, query.limit, _order)
    notes = " ".join(filter(None, [found.note, until.note]))
    return Implementations(query.name, tuple(rows), notes, page)


@marked
def implementations_of(query: SymbolQuery, deadline: Deadline | None = None) -> Relations:
    """The types that extend or implement a type, also through others; of a method, those that
    override it. Proven by scopes and imports first, tests last.

    deadline: of the answer that they are for; None: in SECONDS
    Raises Conflict INGEST_REQUIRED and NotFound REPO_NOT_FOUND.
    """
    until = deadline or Deadline(SECONDS)
    notes: dict[str, None] = {}

    def in_root(root: Root, scope: Scope) -> list[Relation]:
        own = replace(query, filters=scope.filters)
        search = _Search(RootProject(root, until), own)
        found = dict.fromkeys([*search.with_rules(), *search.by_text()])
        notes.update(search.notes)
        return [row for row in search.rows(found) if _passes(own, row)]

    rows = Scope(query.repositories, query.filters).collect(in_root)
    rows.sort(key=_order)
    shown = {(row.place.root.id, row.place.path, row.line): row for row in reversed(rows)}
    rows = [row for row in rows if shown[row.place.root.id, row.place.path, row.line] is row]
    notes |= {until.note: None} if until.unread and not deadline else {}
    return Relations(tuple(rows[: query.limit]), " ".join(notes))


def _passes(query: SymbolQuery, row: Relation) -> bool:
    return query.takes(row.place.root, row.place.path, row.place.language)


def _order(row: Relation) -> tuple[bool, bool, str, str, int]:
    is_last = bool(kinds(row.place.path) & LAST_FILES)
    return row.certainty != "proven", is_last, row.place.repo, row.place.path, row.line


class _Search:
    """The search in one root."""

    def __init__(self, project: RootProject, query: SymbolQuery) -> None:
        self.project, self.query = project, query
        self.resolver = Resolver(project)
        self.notes: dict[str, None] = {}

    def definition(self, key: Key) -> Definition:
        return self.facts(key[0]).definitions[key[1]]

    def facts(self, path: str) -> Facts:
        return self.project.facts(path) or Facts()

    def rows(self, found: Sequence[_Subtype] | dict[_Subtype, None]) -> Iterator[Relation]:
        lines = self.project.lines_of({subtype.path for subtype in found})
        for path, row, symbol, of, certainty in found:
            text = lines.get(path, ())
            file = self.project.file(path)
            place = Place(self.project.root, path, file.language if file else "")
            line = one_line(text[row]) if row < len(text) else ""
            yield Relation("implementation", place, row + 1, line, symbol, of, certainty)

    # --- languages with rules ---------------------------------------------------------------------

    def with_rules(self) -> Iterator[_Subtype]:
        wanted = wanted_definitions(self.project, CallersQuery(self.query))
        if not wanted and not self._defined:
            yield from self._of_library()
        # A bare name rarely means a type inside of another one.
        for key in sorted(wanted, key=lambda key: self.definition(key).path.count(".")):
            definition = self.definition(key)
            if definition.kind == "class":
                yield from self._types(key)
            elif (owner := self._owner(key)) is not None:
                yield from self._overrides(owner, definition)

    @cached_property
    def _defined(self) -> list[StoredSymbol]:
        """The definitions of the name in this root."""
        own = (repo_id(self.project.root),)
        hits, _ = matching(replace(self.query, repositories=own, filters=Filters()))
        return [hit.symbol for hit in hits]

    def _of_library(self) -> Iterator[_Subtype]:
        """The types that name one as their base that no file defines, and those below them."""
        name = self.query.last
        paths = [path for path in with_word(self.project, name) if _has_rules(self.project, path)]
        self.project.read(first := self._first(paths))
        for path in first:
            for index, definition in enumerate(self.facts(path).definitions):
                if definition.kind == "class" and name in (base[-1] for base in definition.bases):
                    yield _Subtype(path, definition.row, definition.path, name, "possible")
                    for subtype in self._types((path, index)):
                        yield subtype._replace(certainty="possible")

    def _owner(self, key: Key) -> Key | None:
        around = self.resolver.class_around(key[0], key[1])
        return (around.path, around.number) if around and around.number != MODULE else None

    def _types(self, key: Key) -> Iterator[_Subtype]:
        impls = list(self._rust_impls(key)) if key[0].endswith(".rs") else []
        yield from impls
        known = {(impl.path, impl.symbol) for impl in impls}
        for (path, index), (above, certainty) in self._subtypes(key).items():
            definition = self.definition((path, index))
            symbol = definition.path if definition.name else self.facts(path).enclosing(index)
            if (path, symbol) not in known:
                yield _Subtype(path, definition.row, symbol, self.definition(above).path, certainty)
        if key[0].endswith(".go"):
            yield from self._go_types(key)

    def _overrides(self, owner: Key, method: Definition) -> Iterator[_Subtype]:
        for (path, index), (_, certainty) in self._subtypes(owner).items():
            for member in self.facts(path).definitions:
                if member.scope == index and member.name == method.name:
                    yield _Subtype(path, member.row, member.path, method.path, certainty)

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
        name = self.definition(key).name
        for path in self._files(key[0], name):
            facts = self.facts(path)
            names = {name, *(one.name for one in facts.imports if one.member == name)}
            for index, definition in enumerate(facts.definitions):
                bases = [base for base in definition.bases if not names.isdisjoint(base)]
                certainties = {self._meant(path, definition.scope, base, key) for base in bases}
                if definition.kind == "class" and (path, index) != key and certainties - {None}:
                    yield (path, index), "proven" if "proven" in certainties else "possible"

    def _first(self, paths: Sequence[str]) -> Sequence[str]:
        """As many files as are looked at."""
        if len(paths) > MAX_FILES:
            self.notes[NOT_ALL] = None
        return paths[:MAX_FILES]

    def _files(self, path: str, name: str) -> Sequence[str]:
        """The files of the languages of a file that have a name."""
        family = rules_for(path).family
        words = [word for word in re2.findall(r"\w+", name) if word]
        files = dict.fromkeys([path, *(with_word(self.project, words[0]) if words else ())])
        known = [
            one for one in files if (file := self.project.file(one)) and file.language in family
        ]
        first = self._first(known)
        self.project.read(first)
        return first

    def _meant(self, path: str, scope: int, base: Sequence[str], key: Key) -> Certainty | None:
        """How sure it is that a base is a type; None if it is another."""
        values = self.resolver.evaluate(path, scope, tuple(base))
        if any((value.path, value.number) == key for value in values):
            return "proven"
        is_unknown = all(value.kind == "unknown" for value in values)
        return "possible" if is_unknown and base[-1] == self.definition(key).name else None

    def _rust_impls(self, key: Key) -> Iterator[_Subtype]:
        """`impl Trait for Type`, wherever it is."""
        name = self.definition(key).name
        for path, text in self.project.lines_in_time(self._files(key[0], name)):
            for row, line in enumerate(text):
                if name in line and _RUST_IMPL.match(line):
                    head = line.partition("impl")[2]
                    trait, is_of_trait, type_ = _without_brackets(head).partition(" for ")
                    chain = tuple(part.strip() for part in trait.split("::"))
                    if is_of_trait and chain[-1] == name:
                        certainty = self._meant(path, MODULE, chain, key)
                        if certainty:
                            symbol = type_.partition("{")[0].strip()
                            yield _Subtype(path, row, symbol, name, certainty)

    def _go_types(self, key: Key) -> Iterator[_Subtype]:
        """The types that have all methods of an interface."""
        members = self.facts(key[0]).definitions
        methods = {one.name for one in members if one.scope == key[1] and one.kind == "function"}
        owners: set[tuple[str, str]] | None = None
        first: dict[tuple[str, str], tuple[str, int]] = {}
        for method in sorted(methods):
            defining = [path for path in self.project.defining(method) if path.endswith(".go")]
            files = self._first(defining)
            self.project.read(files)
            having: set[tuple[str, str]] = set()
            for path in files:
                for one in self.facts(path).definitions:
                    if one.name == method and one.owner:
                        owner = (path.rpartition("/")[0], one.owner)
                        having.add(owner)
                        first.setdefault(owner, (path, one.row))
            owners = having if owners is None else owners & having
        if owners:
            self.notes[BY_METHODS] = None
        for folder, owner_name in sorted(owners or ()):
            path, row = self._go_declaration(folder, owner_name) or first[folder, owner_name]
            yield _Subtype(path, row, owner_name, self.definition(key).name, "possible")

    def _go_declaration(self, folder: str, name: str) -> tuple[str, int] | None:
        for path in self.project.defining(name):
            if path.rpartition("/")[0] == folder:
                for one in self.facts(path).definitions:
                    if one.name == name and one.kind == "class":
                        return path, one.row
        return None

    # --- other languages --------------------------------------------------------------------------

    def by_text(self) -> Iterator[_Subtype]:
        languages = {one.language for one in self._defined if one.kind in TYPE_KINDS}
        paths = [*with_word(self.project, self.query.last)]
        if not self._defined:  # of a library
            files = map(self.project.file, paths)
            languages = {file.language for file in files if file and file.language}
        languages -= BY_LANGUAGE.keys()
        if not languages:
            return
        if self._defined:
            self.notes[BY_TEXT.format(", ".join(sorted(languages)))] = None
        for path in self._first(paths):
            file = self.project.file(path)
            if not file or file.language not in languages:
                continue
            if self.project.deadline.is_over:
                self.project.deadline.leave_out(self.project.root, [path])
            else:
                for symbol in outline_of(self.project.root, file.document):
                    if _extends(symbol, self.query.last):
                        row = symbol.start_line - 1
                        yield _Subtype(path, row, symbol.path, self.query.last, "possible")


def _has_rules(project: RootProject, path: str) -> bool:
    file = project.file(path)
    return file is not None and file.language in BY_LANGUAGE


def _extends(symbol: StoredSymbol, name: str) -> bool:
    if symbol.kind not in TYPE_KINDS or symbol.name == name:
        return False
    text = _without_brackets(symbol.signature.partition(symbol.name)[2])
    match = _HERITAGE.search(text)
    if match is None:
        return False
    # Of `Outer.Inner` the last part counts.
    return (
        re2.search(rf"\b{re2.escape(name)}\b\s*(?:$|[^\s.:]|:[^:])", text[match.start() :])
        is not None
    )


def _without_brackets(text: str) -> str:
    """The text without brackets and what is in them, five levels of them."""
    for _ in range(5):
        shorter = _BRACKETS.sub(" ", text)
        if shorter == text:
            break
        text = shorter
    return text
