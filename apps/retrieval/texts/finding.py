"""Grep: the lines of the ingested texts that match a pattern.

The n-gram index tells which files may match; only these are read. Definitions of an identifier in
the pattern come first, then lines by path. A process matches, which is killed at the time limit;
the answer says so.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from apps.core.computed import TimedOut, Work, computing
from apps.core.errors import Unavailable
from apps.index import sharing
from apps.index.changes import sweep_due
from apps.index.grams import Segment, get_grams, literals_of, required_by
from apps.index.lexical import StoredSymbol, get_lexical
from apps.index.models import Root
from apps.index.types import Filters
from apps.retrieval.ingested import ingested_text
from apps.retrieval.overlaps import repeated_files
from apps.retrieval.query import fits
from apps.retrieval.repositories import repo_id, roots_named
from apps.retrieval.scope import narrowed
from apps.retrieval.symbols.definitions import OUTLINE_ONLY, rank_of
from apps.retrieval.symbols.types import Place
from apps.retrieval.texts.batches import Candidate, read
from apps.retrieval.texts.grep_query import GrepQuery
from apps.retrieval.texts.hits import FileMatches, Hit, hits_of
from apps.retrieval.texts.matching import LineTest, Look, Matcher, Mode, in_texts
from apps.retrieval.texts.patterns import identifiers
from apps.retrieval.texts.table import Candidates, FileFacts, FileTable, Numbers, file_table

log = logging.getLogger("codeinfo.retrieval")

# Time limit of one query, seconds.
SECONDS = 10.0
MAX_NAMES, MAX_DEFINITIONS = 3, 10


class Scope(NamedTuple):
    """The files of one root that may match, by their numbers in its table."""

    root: Root
    table: FileTable
    candidates: Candidates
    numbers: Numbers  # of its candidates, those that the filters leave

    def candidate(self, number: int) -> Candidate:
        return Candidate(self.root, self.table, self.candidates, number)


@dataclass
class Search:
    """A search in progress: what is known of its end."""

    query: GrepQuery
    roots: Sequence[Root]
    matcher: Matcher
    until: float  # `time.monotonic` at which it ends
    total: int = 0  # files that may match
    done: int = 0  # of these, files that were read
    stopped: bool = False
    unknown: int = 0  # files without n-grams
    unreadable: int = 0  # files whose text is lost
    scopes: list[Scope] = field(default_factory=list)
    keep: LineTest | None = None

    def candidates(self) -> Iterator[Candidate]:
        """The files that may match: of each root, by path."""
        for scope in self.scopes:
            yield from (scope.candidate(number) for number in scope.numbers.tolist())

    def candidate(self, root: Root, source_file: str) -> Candidate | None:
        """The file with this id, if it may match."""
        for scope in self.scopes:
            number = scope.table.number_of(source_file) if scope.root.id == root.id else None
            if number is not None and np.isin(number, scope.numbers):
                return scope.candidate(number)
        return None

    @property
    def notes(self) -> dict[str, str]:
        """`stopped`, `slow` and `degraded`, if there is something to say."""
        notes = {}
        if self.stopped:
            notes["stopped"] = (
                f"Stopped after {self.done:,} of {self.total:,} files: {SECONDS:g} seconds are "
                "over. Narrow with path, language or repository, or use a longer fixed part."
            )
        if self.unknown:
            notes["slow"] = f"{_files(self.unknown)} without n-grams were read one by one."
        if self.unreadable:
            notes["degraded"] = f"the text of {_files(self.unreadable)} is missing"
        return notes


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def grep(query: GrepQuery) -> dict[str, Any]:
    """The output of Grep: rows of lines or files.

    Raises InvalidInput BAD_PATTERN, Conflict INGEST_REQUIRED, NotFound REPO_NOT_FOUND, and
    Unavailable if the texts cannot be read.
    """
    search = started(query)
    if query.mode == "content":
        rows, more = _page(search, query)
        results = [hit.as_wire() for hit in _with_symbols(rows)]
        roots = {hit.place.root.id: hit.place.root for hit in rows}
    else:
        counts, more, totals = _counted(search)
        results = [
            Place(root, file.path, file.language).as_wire()
            | {"kind": "file"}
            | ({"count": count} if count else {})
            for root, file, count in counts
        ]
        roots = {root.id: root for root, _, _ in counts}
    output: dict[str, Any] = {
        "mode": query.mode,
        "results": results,
        "generations": {repo_id(root): root.generation for root in roots.values()},
        "truncated": more or search.stopped,
        **search.notes,
    }
    if query.mode == "count":
        output |= totals
    if more:
        output["hint"] = (
            f"There is more: continue with offset {query.offset + len(results)}, or narrow with "
            "path, language, repository or a longer pattern."
        )
    return output


def started(query: GrepQuery, keep: LineTest | None = None) -> Search:
    """The search, with the files that may match: of each root, by path. Raises as `grep`."""
    matcher = query.pattern.compiled()
    until = time.monotonic() + SECONDS
    roots, filters = narrowed(roots_named(query.repositories), query.filters)
    query = replace(query, filters=filters)
    search = Search(query, roots, matcher, until, keep=keep)
    pattern = query.pattern
    required = required_by(
        pattern.text,
        fixed=pattern.fixed,
        ignore_case=pattern.ignore_case,
        multiline=pattern.multiline,
    )
    segments = _segments()
    repeated = repeated_files(roots, filters)
    for root in roots:
        table = file_table(root)
        candidates = table.candidates(segments, required, in_piece=matcher.in_two_lines)
        numbers = candidates.numbers
        search.unknown += candidates.unknown
        left_out = repeated.get(root.id, ())
        if left_out or filters != Filters():
            fitting = [
                number
                for number in numbers.tolist()
                if (file := table.files[number]).path not in left_out
                and fits(filters, root, file.path, file.language)
            ]
            numbers = np.array(fitting, np.int64)
        search.scopes.append(Scope(root, table, candidates, numbers))
        search.total += len(numbers)
    if search.unknown:
        sweep_due.set()
    return search


def found(
    search: Search, candidates: Iterable[Candidate], mode: Mode = "lines", most: int | None = None
) -> Iterator[FileMatches]:
    """The files of these that match, until the time limit.

    mode: `lines` with the lines that match, at least the first `most`; `count` with their number

    Raises Unavailable OVERLOADED and Conflict RATE_LIMITED if too much is asked for at once.
    """
    look = Look(search.matcher, search.keep, mode, most)
    try:
        with computing(search.until - time.monotonic()) as work:
            yield from _found(search, candidates, work, look)
    except TimedOut:
        search.stopped = True


def _found(
    search: Search, candidates: Iterable[Candidate], work: Work, look: Look
) -> Iterator[FileMatches]:
    with closing(read(candidates, work, look)) as batches:
        for batch in batches:
            for (root, table, _, number), text, answer in batch.matched:
                file = table.files[number]
                if answer is None:
                    if (text := _other_text(root, file)) is None:
                        search.unreadable += 1
                        continue
                    (answer,) = work.call(in_texts, look, [(file.path, text)])
                if answer:
                    yield FileMatches(root, file, text or b"", answer)
            search.done += batch.size


def _other_text(root: Root, file: FileFacts) -> bytes | None:
    text = ingested_text(root, file.document)
    return None if text is None else text.encode()


def _segments() -> list[Segment]:
    """The n-gram index; without it, all files are read."""
    try:
        return get_grams().segments()
    except Unavailable as error:
        log.warning("n-grams cannot be read: %s", error.message)
        return []


# --- lines ----------------------------------------------------------------------------------------


def line_page(search: Search, first: int, count: int) -> tuple[list[Hit], bool]:
    """Lines of a search from the `first`, each with the definition that contains it, and whether
    there are more."""
    query = replace(search.query, offset=first, limit=count)
    rows, more = _page(search, query)
    return _with_symbols(rows), more


def _page(search: Search, query: GrepQuery) -> tuple[list[Hit], bool]:
    """The rows of the query, and whether there are more."""
    end = query.offset + query.limit
    rows = list(islice(_hits(search, end + 1), query.offset, end + 1))
    return rows[: query.limit], len(rows) > query.limit


def _hits(search: Search, most: int) -> Iterator[Hit]:
    """Definitions, then all other lines by path; at least `most`, if there are so many."""
    first: set[tuple[UUID, str, int]] = set()
    for hit in _definition_hits(search):
        first.add(hit.key)
        yield hit
    search.done = 0
    for each in found(search, search.candidates(), "lines", most + len(first)):
        for hit in hits_of(each, search.query.context):
            if hit.key not in first:
                yield hit


def _definition_hits(search: Search) -> Iterator[Hit]:
    """Of each definition of an identifier in the pattern, the first line that matches."""
    pattern = search.query.pattern
    names = identifiers(literals_of(pattern.text, fixed=pattern.fixed))[:MAX_NAMES]
    symbols = _definitions(search, names)
    if not symbols:
        return
    places = dict.fromkeys((root, symbol.source_file) for root, symbol in symbols)
    files = [file for place in places if (file := search.candidate(*place)) is not None]
    seen: set[tuple[UUID, str, int]] = set()
    texts: dict[str, bytes] = {}
    hits: dict[tuple[UUID, str], list[Hit]] = {}
    for each in found(search, files):
        texts[each.file.document] = each.data
        hits[each.root.id, each.file.document] = list(hits_of(each, search.query.context))
    for root, symbol in symbols:
        line = _line_of_name(texts.get(symbol.source_file, b""), symbol)
        for hit in hits.get((root.id, symbol.source_file), ()):
            if hit.line <= line <= hit.end_line and hit.key not in seen:
                seen.add(hit.key)
                yield replace(hit, defines=True)


def _line_of_name(data: bytes, symbol: StoredSymbol) -> int:
    """The line of a definition that has its name, after decorators and comments; 0 for none."""
    lines = data.split(b"\n")[symbol.start_line - 1 : symbol.end_line]
    name = symbol.name.encode()
    named = (number for number, line in enumerate(lines, symbol.start_line) if name in line)
    return next(named, 0)


def _definitions(search: Search, names: Sequence[str]) -> list[tuple[Root, StoredSymbol]]:
    """The best definitions of some names in the files of the search."""
    symbols: list[tuple[Root, StoredSymbol]] = []
    ignore_case = search.query.pattern.ignore_case
    for name in names:
        for root in search.roots:
            try:
                stored = get_lexical().definitions(root.store, name, sharing.reader(root))
            except Unavailable:
                continue  # lines come by path then
            symbols += [
                (root, symbol)
                for symbol in stored
                if symbol.kind not in OUTLINE_ONLY and (ignore_case or symbol.name == name)
            ]
    symbols.sort(key=lambda pair: rank_of(pair[1]))
    return symbols[:MAX_DEFINITIONS]


def _with_symbols(hits: Sequence[Hit]) -> list[Hit]:
    """The hits with the innermost definition that contains each."""
    outlines: dict[str, list[StoredSymbol]] = {}
    for hit in hits:
        if hit.source_file not in outlines:
            try:
                outline = get_lexical().outline(hit.place.root.store, hit.source_file)
            except Unavailable:
                outline = []
            outlines[hit.source_file] = outline
    return [replace(hit, symbol=_innermost(outlines[hit.source_file], hit.line)) for hit in hits]


def _innermost(symbols: Sequence[StoredSymbol], line: int) -> str:
    """The path of the smallest definition that contains a line; "" for none."""
    around = [each for each in symbols if each.start_line <= line <= each.end_line]
    return min(around, key=lambda each: each.end_line - each.start_line).path if around else ""


# --- files and counts -----------------------------------------------------------------------------


def _counted(search: Search) -> tuple[list[tuple[Root, FileFacts, int]], bool, dict[str, int]]:
    """The files of the query with the number of their lines that match (0 in the mode `files`),
    whether there are more, and the totals of the mode `count`."""
    query = search.query
    counting = query.mode == "count"
    rows: list[tuple[Root, FileFacts, int]] = []
    files = lines = 0
    more = False
    for each in found(search, search.candidates(), "count" if counting else "files"):
        count = each.number if counting else 0
        files, lines = files + 1, lines + count
        if files <= query.offset:
            continue
        if len(rows) < query.limit:
            rows.append((each.root, each.file, count))
            continue
        more = True
        if not counting:
            break
    return rows, more, {"files": files, "lines": lines}
