"""The searches of the search page: passages by words and meaning, or lines by exact text.

A search with words to rank by returns passages. One that has only "exact" texts and /expressions/
returns lines, as Grep does. Both are paged, and say which filter excludes everything.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from apps.browse.box import Box
from apps.browse.page_query import PageQuery
from apps.browse.search_syntax import FILTERS, Term, path_filter
from apps.core.errors import CodeinfoError, InvalidInput
from apps.index import queries, unread
from apps.index.types import Filters
from apps.lookup.marking import marked
from apps.lookup.symbols import SymbolQuery, find_definitions, find_references
from apps.lookup.texts.finding import found, started
from apps.lookup.texts.grep_page import line_page
from apps.lookup.texts.grep_query import GrepQuery
from apps.lookup.texts.hits import Hit as LineHit
from apps.lookup.texts.patterns import Pattern
from apps.retrieval.query import MAX_QUERY, SearchQuery, language_named, parse_filters
from apps.retrieval.ranking.rank import RankingQuery
from apps.retrieval.repositories import find_root, repo_id
from apps.retrieval.results import SearchResult
from apps.retrieval.search import search

# Passages that are ranked for the pages of one search, and the characters of all their texts.
DEPTH = 100
MAX_CHARS = 2_000_000
CONTEXT = 2  # lines before and after a line that matches
MAX_COUNTED = 100  # matches that a filter excludes, and are counted
# Reading all files that may match a condition ends after these seconds; passages are then tested
# one by one, as they come.
FILE_SECONDS = 2.0
# Of counting what filters exclude: a box may have many.
EXCLUSION_SECONDS = 2.0
# Of looking for the names of a query, and how many are looked for.
NAME_SECONDS = 0.5
MAX_NAMES = 3


@dataclass(frozen=True)
class LinePage:
    """One page of lines."""

    hits: tuple[LineHit, ...]
    more: bool
    notes: Mapping[str, str]  # as in the output of Grep
    degraded: str = ""


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

    Raises InvalidInput with details.details, and NotFound REPO_NOT_FOUND.
    """
    if len(query.q) > MAX_QUERY:
        problem = f"a search has at most {MAX_QUERY:,} characters"
        raise InvalidInput(problem, details={"details": [problem]})
    box = Box.parse(query.q)
    language = box.value("lang")
    if language and not language_named(language):
        problem = f"lang:{language[:40]} is not a language that codeinfo knows"
        raise InvalidInput(problem, details={"details": [problem]})
    box.check()
    filters_without(box)
    terms = box.of("repo")
    roots = queries.published_roots() if terms else ()
    names = (repo_id(find_root(term.text, roots)) for term in terms)
    return replace(
        query,
        q=box.rest,
        box=Box.parse(box.rest),
        repositories=tuple(dict.fromkeys(names)) or query.repositories,
        language=language_named(language) or query.language,
        path=box.path or query.path,
    )


def filters_without(box: Box, filters: Filters | None = None) -> Filters:
    """The filters, and what the box leaves out by `-file:`, `-lang:` and `-repo:`.

    Raises InvalidInput with details.details, and NotFound REPO_NOT_FOUND.
    """
    left_out = {kind: [t.text for t in box.of(kind, excludes=True)] for kind in FILTERS}
    unknown = [name for name in left_out["lang"] if not language_named(name)]
    problems = [f"-lang:{name[:40]} is not a language that codeinfo knows" for name in unknown]
    for path in left_out["file"]:
        parse_filters({"path": path_filter(path)}, problems)
    if problems:
        raise InvalidInput(", ".join(problems), details={"details": problems})
    roots = queries.published_roots() if left_out["repo"] else ()
    return replace(
        filters or Filters(),
        not_paths=tuple(map(path_filter, left_out["file"])),
        not_languages=tuple(map(language_named, left_out["lang"])),
        not_repositories=tuple(repo_id(find_root(name, roots)) for name in left_out["repo"]),
    )


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
    return replace(parsed, filters=filters_without(query.box, parsed.filters))


def _grep(query: SearchQuery, pattern: Pattern, context: int = 0) -> GrepQuery:
    """The query of lines in the same files."""
    return GrepQuery(
        pattern, context=context, repositories=query.repositories, filters=query.filters
    )


def symbol_query(query: PageQuery) -> SymbolQuery:
    """The query of symbols. Raises InvalidInput and NotFound REPO_NOT_FOUND."""
    parsed = SymbolQuery.parse(query.as_wire("name"))
    return replace(parsed, filters=filters_without(query.box, parsed.filters))


@marked
def find_lines(query: PageQuery, until: float = math.inf) -> LinePage:
    """A page of lines that fulfil all conditions: definitions first, then by path.

    until: `time.monotonic` at which it ends; earlier, if the time of a Grep is over.

    Raises Conflict INGEST_REQUIRED, NotFound REPO_NOT_FOUND, Unavailable.
    """
    grep = _grep(_search_query(query), _most_selective(query.box), CONTEXT)
    running = started(grep, keep=query.box)
    running.until = min(until, running.until)
    first = (query.page - 1) * query.limit
    rows, more = line_page(running, first, query.limit)
    return LinePage(tuple(rows), more, running.notes)


def _most_selective(box: Box) -> Pattern:
    """The required pattern that is searched for; the others are tested where it matches."""
    return max(box.required, key=lambda pattern: (pattern.fixed, len(pattern.text)))


def _files_with(query: SearchQuery, box: Box) -> Mapping[UUID, frozenset[str]] | None:
    """The files with a text that all conditions require, by root; None if there are too many to
    tell. Raises as `find_lines`."""
    if not box.required:
        return None
    running = started(_grep(query, _most_selective(box)))
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
    running = started(_grep(query, Pattern(name, fixed=True, ignore_case=True)))
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
    words = [term for term in query.box.conditions if query.is_exact and not term.excludes]
    left_out = [term for term in query.box.conditions if term not in words]
    left_out += query.box.filters_out
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
    for term in query.box.filters_out:
        yield term.source, query.at(query.box.without(term))
    if not query.symbols:
        for term in query.box.conditions:
            if _has_others(query.box, term):
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
