"""The searches for lines: all that fulfil the conditions of a box, counted, of which a page shows
some by file."""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.browse.page_query import PageQuery
from apps.code.paths import PROSE_SUFFIXES
from apps.index.types import FileKey
from apps.lookup.marking import marked
from apps.lookup.symbols.types import Place
from apps.lookup.texts.batches import Candidate
from apps.lookup.texts.finding import Search, definition_hits, found, started, with_symbols
from apps.lookup.texts.grep_query import GrepQuery
from apps.lookup.texts.hits import FileMatches, Hit, hits_of
from apps.lookup.texts.patterns import Pattern
from apps.retrieval.query import SearchQuery

CONTEXT = 2  # lines before and after a line that matches
# Totals are exact up to so many lines, and if so many seconds suffice to count them.
MAX_TOTAL = 10_000
TOTAL_SECONDS = 1.0
ANY_LINE = Pattern(".")
# Names of files that repeat what happened, without their suffix.
CHANGELOGS = ("changelog", "changes", "history", "news", "release")


@dataclass(frozen=True)
class LinePage:
    """What fulfils the conditions, and a page of it.

    files: those with lines, and how many lines each has; 0 if its lines were not looked at
    is_exact: whether these are all
    hits: lines of this page; none, if it shows files
    """

    files: tuple[tuple[Place, int], ...]
    is_exact: bool
    notes: Mapping[str, str]  # as in the output of Grep
    hits: tuple[Hit, ...] = ()
    degraded: str = ""

    @property
    def total(self) -> int:
        """The lines, at most MAX_TOTAL."""
        return min(MAX_TOTAL, sum(count for _, count in self.files))

    @property
    def counts(self) -> dict[FileKey, int]:
        """The lines of each file."""
        return {(place.repo, place.path, place.language): count for place, count in self.files}


def grep_query(query: SearchQuery, pattern: Pattern, context: int = 0) -> GrepQuery:
    """The query of lines in the same files."""
    return GrepQuery(
        pattern, context=context, repositories=query.repositories, filters=query.filters
    )


@marked
def find_lines(query: PageQuery, wanted: SearchQuery, until: float = math.inf) -> LinePage:
    """A page of the lines that fulfil all conditions, by file: those with definitions first, then
    code, prose and changelogs. With `type:file` no lines, only the files.

    wanted: which files to look into
    until: `time.monotonic` at which it ends; earlier, if the time of a Grep is over.

    Raises Conflict INGEST_REQUIRED, NotFound REPO_NOT_FOUND, Unavailable.
    """
    pattern = query.box.selective or ANY_LINE
    search = started(grep_query(wanted, pattern, CONTEXT), keep=query.box)
    search.until = until = min(until, search.until)
    if not query.box.is_wanted:
        places = (Place(c.root, c.file.path, c.file.language) for c in _in_order(search, ()))
        return LinePage(tuple((place, 0) for place in places), True, {})
    definitions = list(definition_hits(search))
    first = (query.page - 1) * query.limit
    counted, is_exact = _counted(search, _in_order(search, definitions), first + query.limit, until)
    notes = search.notes
    files = tuple((Place(m.root, m.file.path, m.file.language), m.number) for m in counted)
    if query.box.wants_files:
        return LinePage(files, is_exact, notes)
    search.until = until
    hits = _page(search, counted, definitions, first, query.limit)
    return LinePage(files, is_exact and not search.stopped, notes, tuple(hits))


def _in_order(search: Search, definitions: Sequence[Hit]) -> list[Candidate]:
    """The files that may match, in the order in which they are shown."""
    defining = {(hit.place.root.id, hit.source_file): n for n, hit in enumerate(definitions)}

    def rank(candidate: Candidate) -> tuple[int, int]:
        key = candidate.root.id, candidate.file.document
        return defining.get(key, len(defining)), _kind_rank(candidate.file.path)

    return sorted(search.candidates(), key=rank)


def _kind_rank(path: str) -> int:
    """0 for code, 1 for prose, 2 for changelogs."""
    stem, dot, suffix = path.rpartition("/")[2].lower().rpartition(".")
    is_prose = not stem or f".{suffix}" in PROSE_SUFFIXES
    return is_prose + (is_prose and (stem or suffix).startswith(CHANGELOGS))


def _counted(
    search: Search, files: Sequence[Candidate], enough: int, until: float
) -> tuple[list[FileMatches], bool]:
    """The files with lines, at least `enough` lines if there are so many, and whether these are
    all. Beyond `enough`, it counts up to MAX_TOTAL and for TOTAL_SECONDS."""
    counted: list[FileMatches] = []
    total, search.done = 0, 0
    for limit in (min(until, time.monotonic() + TOTAL_SECONDS), until):
        search.until, search.stopped = limit, False
        for matches in found(search, files[search.done :], "count"):
            counted.append(matches)
            total += matches.number
            if total > MAX_TOTAL:
                return counted, False
        if total >= enough or not search.stopped:
            break
    is_exact, search.stopped = not search.stopped, search.stopped and total < enough
    return counted, is_exact


def _page(
    search: Search,
    counted: Iterable[FileMatches],
    definitions: Sequence[Hit],
    first: int,
    limit: int,
) -> list[Hit]:
    """Some of the lines, of each file its definitions first."""
    before, wanted = 0, list[Candidate]()
    skipped = first
    for matches in counted:
        is_shown = before < first + limit and before + matches.number > first
        candidate = search.candidate(matches.root, matches.file.document) if is_shown else None
        if candidate is not None:
            skipped = skipped if wanted else first - before
            wanted.append(candidate)
        before += matches.number
    known = {hit.key: hit for hit in definitions}
    hits = [hit for matches in found(search, wanted) for hit in _hits(search, matches, known)]
    return with_symbols(hits[skipped : skipped + limit])


def _hits(
    search: Search, matches: FileMatches, known: Mapping[tuple[UUID, str, int], Hit]
) -> Iterator[Hit]:
    hits = [known.get(hit.key, hit) for hit in hits_of(matches, search.query.context)]
    return iter(sorted(hits, key=lambda hit: not hit.defines))
