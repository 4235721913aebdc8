"""A name in the code that a reader clicked: its definitions, its callers, its uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.utils.safestring import SafeString

from apps.browse.highlight import highlight_lines
from apps.browse.hits import ReferenceFile, reference_files
from apps.browse.lines import Lines
from apps.browse.marks import name_marked
from apps.lookup.symbols import (
    CallersQuery,
    SymbolQuery,
    find_callers,
    find_definitions,
    find_references,
)
from apps.lookup.symbols.call_types import Caller
from apps.lookup.symbols.types import Definition
from apps.retrieval.query import invalid

NAME_URL = "/ui/code/name"
MAX_DEFINITIONS = 8
MAX_CALLERS = 20
MAX_USES = 30


@dataclass(frozen=True)
class NameQuery:
    """A name, and where it was clicked."""

    name: str
    repo: str = ""  # repository id; "": all repositories
    path: str = ""  # of the file in the repository
    line: int = 0  # 1-based; 0: unknown

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "NameQuery":
        """Check `{name, repo?, path?, line?}`. Raises InvalidInput with all problems."""
        repo, path, line = (str(data.get(key) or "") for key in ("repo", "path", "line"))
        symbol = SymbolQuery.parse({"name": data.get("name"), "repository": [repo] if repo else []})
        if line and not (line.isascii() and line.isdigit() and len(line) < 8):
            raise invalid("line must be a line number")
        return cls(symbol.name, repo, path, int(line or 0))

    @property
    def symbol(self) -> SymbolQuery:
        return SymbolQuery(self.name, (self.repo,) if self.repo else ())

    def url(self, part: str) -> str:
        """The URL of a part of the panel."""
        params = {"name": self.name, "repo": self.repo, "path": self.path, "line": self.line}
        return f"{NAME_URL}?{urlencode({'part': part} | {k: v for k, v in params.items() if v})}"

    @property
    def callers_url(self) -> str:
        return self.url("callers")

    @property
    def uses_url(self) -> str:
        return self.url("uses")

    @property
    def search_url(self) -> str:
        """The search page with all definitions and uses."""
        scope = {"repository": self.repo} if self.repo else {}
        return f"/search?{urlencode({'q': self.name, 'mode': 'symbols'} | scope)}"


@dataclass(frozen=True)
class NameLine(Lines):
    """A line of the panel: a definition or a call."""

    html: SafeString
    label: str  # kind of a definition; the definition that contains a call
    is_here: bool = False  # the reader is in this definition
    is_possible: bool = False  # a call that may mean another definition


@dataclass(frozen=True)
class PanelPart:
    """What a part of the panel shows."""

    lines: Sequence[NameLine | ReferenceFile]  # uses by file
    count: int  # lines
    more: bool  # there are more than these
    note: str  # how definitions match, if not exactly; what was not looked at for callers
    degraded: str


def definitions(query: NameQuery) -> PanelPart:
    """The definitions in the repository, those in the file itself first; those in others if it has
    none. Raises as `find_definitions`."""
    answer = find_definitions(query.symbol)
    note = NOTES.get(answer.match, "") if answer.results else ""
    if not answer.results and query.repo:
        answer = find_definitions(replace(query.symbol, repositories=()))
        if answer.results:
            note = f"Not defined in {query.repo}. Other repositories define it."
    results = sorted(answer.results, key=lambda result: not _is_same_file(result, query))
    lines = [_definition_line(result, query) for result in results[:MAX_DEFINITIONS]]
    more = answer.truncated or len(results) > len(lines)
    return PanelPart(lines, len(lines), more, note, answer.degraded)


NOTES: Mapping[str, str] = {
    "case-insensitive": "No definition has exactly this name. These differ in case.",
    "last-part": "No definition matches the qualifier.",
}


def callers(query: NameQuery) -> PanelPart:
    """The callers of the definition whose first line was clicked, else of all definitions of the
    name. Raises as `find_callers`."""
    wanted = CallersQuery(replace(query.symbol, limit=MAX_CALLERS))
    answer = find_callers(wanted)
    places = [(definition.place.path, definition.line) for definition in answer.definitions]
    if (query.path, query.line) in places and len(places) > 1:
        answer = find_callers(replace(wanted, path=query.path, line=query.line))
    lines = [_caller_line(result, query.name) for result in answer.results]
    return PanelPart(lines, len(lines), answer.truncated, answer.notes, answer.degraded)


def uses(query: NameQuery) -> PanelPart:
    """The lines with the name, by file. Raises as `find_references`."""
    answer = find_references(replace(query.symbol, limit=MAX_USES))
    files = reference_files(answer.results, answer.name)
    return PanelPart(files, len(answer.results), answer.truncated, "", answer.degraded)


# By their names in the URL.
PARTS = {"definitions": definitions, "callers": callers, "uses": uses}


def _is_same_file(each: Definition, query: NameQuery) -> bool:
    return (each.place.repo, each.place.path) == (query.repo, query.path)


def _definition_line(each: Definition, query: NameQuery) -> NameLine:
    place = each.place
    text = each.signature or each.chunk.partition("\n")[0].strip()
    html = highlight_lines(text, path=place.path, language=place.language)[0]
    here = _is_same_file(each, query) and each.start_line <= query.line <= each.end_line
    start = each.start_line
    return NameLine(place.repo, place.path, start, each.end_line, html, each.kind, is_here=here)


def _caller_line(each: Caller, name: str) -> NameLine:
    place = each.place
    html = highlight_lines(each.text.strip(), path=place.path, language=place.language)[0]
    return NameLine(
        place.repo,
        place.path,
        each.line,
        each.line,
        name_marked(html, name.rpartition(".")[2]),
        each.symbol,
        is_possible=each.kind == "possible",
    )
