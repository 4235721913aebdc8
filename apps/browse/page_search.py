"""The searches of the search page: passages by words and meaning, or lines by exact text.

A search with words to rank by returns passages. One that has only "exact" texts and /expressions/
returns lines, as Grep does. Both are paged, and say which filter excludes everything.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from apps.browse import line_search
from apps.browse.box import Box
from apps.browse.line_search import LinePage, grep_query
from apps.browse.page_query import PageQuery
from apps.browse.resolving import Names, read_box
from apps.browse.search_tree import FILTERS, Term, at_ref, path_filter
from apps.core.errors import CodeinfoError
from apps.index import queries, unread
from apps.index.types import Filters
from apps.lookup.symbols import SymbolQuery, find_definitions, find_references
from apps.lookup.texts.finding import found, started
from apps.lookup.texts.patterns import Pattern
from apps.retrieval.query import SearchQuery, invalid
from apps.retrieval.ranking.rank import RankingQuery
from apps.retrieval.repositories import repo_id
from apps.retrieval.results import SearchResult
from apps.retrieval.search import search

# Passages that are ranked for the pages of one search, and the characters of all their texts.
DEPTH = 100
MAX_CHARS = 2_000_000
MAX_COUNTED = 100  # matches that a filter excludes, and are counted
# Reading all files that may match a condition ends after these seconds; passages are then tested
# one by one, as they come.
FILE_SECONDS = 2.0
# Of counting what filters exclude: a box may have many.
EXCLUSION_SECONDS = 2.0
# Of looking for the names of a query, and how many are looked for.
NAME_SECONDS = 0.5
MAX_NAMES = 3
NOTHING = (
    "there is nothing to search for: add words, a text in quotes or sym:name, or list files with "
    "type:file"
)


@dataclass(frozen=True)
class Exclusion:
    """A filter without which there would be results."""

    label: str  # as in the box: `lang:rust`
    count: int  # results without it, at most MAX_COUNTED
    url: str
    together: bool = False  # the label has several filters

    @property
    def is_more(self) -> bool:
        return self.count >= MAX_COUNTED


def interpreted(query: PageQuery) -> PageQuery:
    """The query with its box parsed. Filters in the box take the place of those beside it.

    Raises InvalidInput with details.details, and Conflict INGEST_REQUIRED.
    """
    box = read_box(query.q)
    rest = box.rest(Names())
    parsed = box if rest == query.q else replace(read_box(rest), hints=box.hints)
    if not query.symbols and not (parsed.is_wanted or _lists_files(parsed)) and parsed.conditions:
        raise invalid(NOTHING)
    values = {kind: [term.text for term in terms] for kind, terms in box.fields.items()}
    names = _at_refs(values.get("repo", ()), values.get("rev", ()))
    return replace(
        query,
        q=rest,
        box=parsed,
        repositories=tuple(dict.fromkeys(names)) or query.repositories,
        language=values["lang"][0] if values.get("lang") else query.language,
        path=path_filter(values["file"][0]) if values.get("file") else query.path,
    )


def _lists_files(box: Box) -> bool:
    """Return True if a box asks for files by filters alone."""
    return box.wants_files and all(term.kind in FILTERS for term in box.conditions)


def _at_refs(names: Sequence[str], refs: Sequence[str]) -> Sequence[str]:
    """The repositories of `repo:` at the refs of `rev:`; all that are ingested at them, if none is
    named."""
    if not refs:
        return names
    if names:
        return [at_ref(name, ref) for name in names for ref in refs]
    endings = tuple(f"@{ref}" for ref in refs)
    return sorted(id_ for id_ in map(repo_id, queries.published_roots()) if id_.endswith(endings))


def find_passages(query: PageQuery) -> SearchResult:
    """The DEPTH best passages, of which each page shows some. Raises as `search`."""
    search_query = replace(_search_query(query), limit=DEPTH, explained=True)
    if query.box.conditions:
        only = _files_with(search_query, query.box)
        search_query = replace(search_query, test=query.box, only=only)
    return search(search_query, with_cutoff=not query.weaker, total_chars=MAX_CHARS)


def _search_query(query: PageQuery) -> SearchQuery:
    """The query of passages. Raises InvalidInput and NotFound REPO_NOT_FOUND."""
    parsed = SearchQuery.parse(query.as_wire("query"))
    return replace(parsed, filters=_tested(query, parsed.filters))


def _tested(query: PageQuery, filters: Filters) -> Filters:
    return replace(filters, test=query.box.may_have) if query.box.conditions else filters


def symbol_query(query: PageQuery) -> SymbolQuery:
    """The query of symbols. Raises InvalidInput and NotFound REPO_NOT_FOUND."""
    parsed = SymbolQuery.parse(query.as_wire("name"))
    return replace(parsed, filters=_tested(query, parsed.filters))


def find_lines(query: PageQuery, until: float = math.inf) -> LinePage:
    """A page of lines or files (`line_search`). Raises as it does."""
    return line_search.find_lines(query, _search_query(query), until)


def _files_with(query: SearchQuery, box: Box) -> Mapping[UUID, frozenset[str]] | None:
    """The files with a text that all conditions require, by root; None if there are too many to
    tell. Raises as `find_lines`."""
    if box.selective is None:
        return None
    running = started(grep_query(query, box.selective))
    running.until = time.monotonic() + FILE_SECONDS
    paths: dict[UUID, set[str]] = {}
    with unread.noted() as lost:
        for matches in found(running, running.candidates(), "files"):
            paths.setdefault(matches.root.id, set()).add(matches.file.path)
    if running.stopped or lost.texts:
        return None
    return {root_id: frozenset(names) for root_id, names in paths.items()}


def absent_names(query: PageQuery) -> list[str]:
    """The identifiers of the query that no line of the searched files has, in any case.

    Raises as `find_lines`.
    """
    search_query = _search_query(query)
    names = sorted(RankingQuery.of(query.box.text).names)[:MAX_NAMES]
    until = time.monotonic() + NAME_SECONDS
    return [name for name in names if _is_absent(search_query, name, until)]


def _is_absent(query: SearchQuery, name: str, until: float) -> bool:
    running = started(grep_query(query, Pattern(name, fixed=True, ignore_case=True)))
    running.until = until
    with unread.noted() as lost:
        has_line = next(found(running, running.candidates()), None) is not None
    return not has_line and not lost.texts and running.notes.keys() <= {"slow"}


# --- filters that exclude everything --------------------------------------------------------------


def exclusions(query: PageQuery) -> list[Exclusion]:
    """Each filter of a search without results, or with weak ones only, that would have some without
    it; if there is none, all filters together. Those that EXCLUSION_SECONDS do not reach are left
    out."""
    until = time.monotonic() + EXCLUSION_SECONDS
    wider = list(_wider(query))
    counted = (Exclusion(label, count_results(other, until), other.url()) for label, other in wider)
    single = [exclusion for exclusion in counted if exclusion.count]
    if single or len(wider) < 2:
        return single
    bare = _bare(query)
    labels = ", ".join(label for label, _ in wider)
    together = Exclusion(labels, count_results(bare, until), bare.url(), together=True)
    return [together] if together.count else []


def _bare(query: PageQuery) -> PageQuery:
    """The query without filters; of its conditions, only those without which it would be empty."""
    kept = [term for term in query.box.removable if query.is_exact and term.is_wanted]
    left_out = [term for term in query.box.removable if term not in kept]
    text = query.q if query.symbols else query.box.without(*left_out)
    return replace(query.at(text), repositories=(), language="", path="")


def _wider(query: PageQuery) -> Iterator[tuple[str, PageQuery]]:
    """Each filter as it is written in the box, and the query without it."""
    if query.language:
        yield f"lang:{query.language}", replace(query, language="")
    if query.path:
        yield f"file:{_quoted(query.path)}", replace(query, path="")
    if query.repositories:
        names = " ".join(f"repo:{_quoted(name)}" for name in query.repositories)
        yield names, replace(query, repositories=())
    for term in query.box.removable:
        is_filter = term.kind in FILTERS
        if is_filter or (not query.symbols and _has_others(query.box, term)):
            yield term.source, query.at(query.box.without(term))


def _has_others(box: Box, term: Term) -> bool:
    """Whether something to search for is left without a term."""
    return any(other is not term and other.is_wanted for other in box.terms)


def _quoted(text: str) -> str:
    return f'"{text}"' if " " in text else text


def count_results(query: PageQuery, until: float = math.inf) -> int:
    """The number of results that are not weak, at most MAX_COUNTED; 0 on an error, and once the
    time (`time.monotonic`) is over."""
    if time.monotonic() > until:
        return 0
    try:
        if query.symbols:
            wide = replace(symbol_query(query), limit=MAX_COUNTED)
            return len(find_definitions(wide).results) or len(find_references(wide).results)
        if query.is_exact:
            return len(find_lines(replace(query, page=1, limit=MAX_COUNTED), until).hits)
        return sum(not match.is_weak for match in find_passages(query).matches)
    except CodeinfoError:
        return 0
