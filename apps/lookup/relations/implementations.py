"""Find the types that extend or implement a type, and the methods that override a method."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import re2

from apps.code.callgraph.languages import BY_LANGUAGE
from apps.index.symbols import outline_of
from apps.index.types import StoredSymbol
from apps.lookup.deadline import Deadline
from apps.lookup.marking import marked
from apps.lookup.relations.subtypes import Subtype, Subtypes, without_brackets
from apps.lookup.relations.types import Relation, Relations, Scope, first_of_lines, line_at
from apps.lookup.symbols.call_types import CallersQuery
from apps.lookup.symbols.callers import wanted_definitions
from apps.lookup.symbols.definitions import defined_in
from apps.lookup.symbols.project import PARSE_SECONDS, RootProject
from apps.lookup.symbols.types import Listed, SymbolQuery
from apps.retrieval.paging import Pager
from apps.retrieval.repositories import roots_named

# Rows of all pages.
MAX_ROWS = 5_000
TYPE_KINDS = frozenset(
    {"class", "interface", "struct", "trait", "protocol", "enum", "record", "object", "module"}
)
BY_TEXT = "In {}, declarations are read as text."
# Of a declaration: what is in brackets, and where its supertypes begin.
_HERITAGE = re2.compile(
    r"(?:^|[^:]):(?:[^:]|$)|<|\b(?:extends|implements|inherits|with|conforms|deriving)\b"
)


@marked
def find_implementations(query: SymbolQuery) -> Listed[Relation]:
    """A page of what `implementations_of` finds.

    Raises InvalidInput CURSOR_INVALID and Conflict CURSOR_EXPIRED, and as `implementations_of`.
    """
    pager = Pager.of("implementations", query, roots_named(query.repositories))
    until = Deadline(PARSE_SECONDS)
    found = implementations_of(replace(query, limit=MAX_ROWS, cursor=None), until)
    rows, page = pager.page(found.rows, query.limit, _order)
    notes = " ".join(filter(None, [found.note, until.note]))
    return Listed(query.name, tuple(rows), page.more, notes, page=page)


def implementations_of(query: SymbolQuery, deadline: Deadline) -> Relations:
    """The types that extend or implement a type, also through others; of a method, those that
    override it. Proven by scopes and imports first, tests last.

    Raises Conflict INGEST_REQUIRED and NotFound REPO_NOT_FOUND.
    """
    notes: dict[str, None] = {}

    def in_root(project: RootProject, scope: Scope) -> list[Relation]:
        own = replace(query, filters=scope.filters)
        search = _Search(project, own)
        found = dict.fromkeys([*search.with_rules(), *search.by_text()])
        notes.update(search.notes)
        rows = search.rows(found)
        return [row for row in rows if own.takes(project.root, row.place.path, row.place.language)]

    rows = Scope(query.repositories, query.filters).collect(deadline, in_root)
    rows = first_of_lines(sorted(rows, key=_order))
    return Relations(tuple(rows[: query.limit]), " ".join(notes))


def _order(row: Relation) -> tuple[bool, bool, str, str, int]:
    place = row.place
    return row.certainty != "proven", place.is_last, place.repo, place.path, row.line


class _Search:
    """The search in one root."""

    def __init__(self, project: RootProject, query: SymbolQuery) -> None:
        self.project, self.query = project, query
        self.subtypes = Subtypes(project)
        self.notes = self.subtypes.notes

    def rows(self, found: Sequence[Subtype] | dict[Subtype, None]) -> Iterator[Relation]:
        lines = self.project.lines_of({subtype.path for subtype in found})
        for path, row, symbol, of, certainty in found:
            place, text = self.project.place(path), line_at(lines.get(path, ()), row + 1)
            yield Relation("implementation", place, row + 1, text, symbol, of, certainty)

    # --- languages with rules ---------------------------------------------------------------------

    def with_rules(self) -> Iterator[Subtype]:
        wanted = wanted_definitions(self.project, CallersQuery(self.query))
        if not wanted and not self._defined:
            yield from self._of_library()
        # A bare name rarely means a type inside of another one.
        for key in sorted(wanted, key=lambda key: self.project.definition(key).path.count(".")):
            definition = self.project.definition(key)
            if definition.kind == "class":
                yield from self.subtypes.types(key)
            else:
                for (path, index), certainty in self.subtypes.overriding(key):
                    member = self.project.definition((path, index))
                    yield Subtype(path, member.row, member.path, definition.path, certainty)

    @cached_property
    def _defined(self) -> list[StoredSymbol]:
        """The definitions of the name in this root."""
        return defined_in(self.project.root, self.query.name)

    def _of_library(self) -> Iterator[Subtype]:
        """The types that name one as their base that no file defines, and those below them."""
        name = self.query.last
        paths = [
            path
            for path in self.project.with_word(name)
            if self.project.language(path) in BY_LANGUAGE
        ]
        self.project.read(first := self.subtypes.first(paths))
        for path in first:
            for index, definition in enumerate(self.project.known(path).definitions):
                if definition.kind == "class" and name in (base[-1] for base in definition.bases):
                    yield Subtype(path, definition.row, definition.path, name, "possible")
                    for subtype in self.subtypes.types((path, index)):
                        yield subtype._replace(certainty="possible")

    # --- other languages --------------------------------------------------------------------------

    def by_text(self) -> Iterator[Subtype]:
        languages = {one.language for one in self._defined if one.kind in TYPE_KINDS}
        paths = [*self.project.with_word(self.query.last)]
        if not self._defined:  # of a library
            languages = {*map(self.project.language, paths)} - {""}
        languages -= BY_LANGUAGE.keys()
        if not languages:
            return
        if self._defined:
            self.notes[BY_TEXT.format(", ".join(sorted(languages)))] = None
        own = (p for p in self.subtypes.first(paths) if self.project.language(p) in languages)
        for path in self.project.in_time(own):
            file = self.project.file(path)
            for symbol in outline_of(self.project.root, file.document) if file else ():
                if _extends(symbol, self.query.last):
                    row = symbol.start_line - 1
                    yield Subtype(path, row, symbol.path, self.query.last, "possible")


def _extends(symbol: StoredSymbol, name: str) -> bool:
    if symbol.kind not in TYPE_KINDS or symbol.name == name:
        return False
    text = without_brackets(symbol.signature.partition(symbol.name)[2])
    match = _HERITAGE.search(text)
    if match is None:
        return False
    # Of `Outer.Inner` the last part counts.
    return (
        re2.search(rf"\b{re2.escape(name)}\b\s*(?:$|[^\s.:]|:[^:])", text[match.start() :])
        is not None
    )
