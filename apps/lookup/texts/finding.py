"""Grep: the files of the ingested texts that match a pattern, and definitions in them.

The n-gram index tells which files may match; only these are read. Definitions of an identifier in
the pattern come first, then lines by path. A process matches, which is killed at the time limit;
the answer says so.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

import numpy as np

from apps.core.concurrency.computed import TimedOut, Work, computing
from apps.core.errors import Unavailable
from apps.core.system.mapping import read_again
from apps.core.values.texts import counted
from apps.index.changes import sweep_due
from apps.index.grams import Segment, get_grams, literals_of, required_by
from apps.index.models import Root
from apps.index.types import Filters, StoredSymbol
from apps.lookup.ingested import known_definitions, known_outline
from apps.lookup.symbols.definitions import OUTLINE_ONLY, rank_of
from apps.lookup.symbols.project import LiveFile, texts_of_live
from apps.lookup.texts.batches import Candidate, read
from apps.lookup.texts.grep_query import GrepQuery
from apps.lookup.texts.hits import FileMatches, Hit, hits_of
from apps.lookup.texts.matching import LineTest, Look, Matcher, Mode, in_texts
from apps.lookup.texts.patterns import identifiers
from apps.lookup.texts.table import Candidates, FileTable, Numbers, file_table
from apps.retrieval.overlaps import repeated_files
from apps.retrieval.query import fits
from apps.retrieval.repositories import roots_named
from apps.retrieval.scope import narrowed

log = logging.getLogger("codeinfo.lookup")

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
    start: tuple[int, int] = (0, 0)  # the first file to read: its scope, its number there
    done: int = 0  # of the files from there on, those that were read
    stopped: bool = False
    unknown: int = 0  # files without n-grams
    scopes: list[Scope] = field(default_factory=list)
    keep: LineTest | None = None

    def candidates(self) -> Iterator[Candidate]:
        """The files that may match, from `start` on: of each root, by path."""
        for index, scope in enumerate(self.scopes):
            yield from (scope.candidate(number) for number in self._rest(index).tolist())

    def _rest(self, index: int) -> Numbers:
        """The numbers of a scope's files from `start` on."""
        scope, number = self.start
        numbers = self.scopes[index].numbers
        if index == scope:
            return numbers[np.searchsorted(numbers, number) :]
        return numbers if index > scope else numbers[:0]

    @property
    def next_place(self) -> tuple[int, int] | None:
        """Where a search that was stopped continues; None if it read no file."""
        left = self.done
        for index in range(len(self.scopes) if left else 0):
            rest = self._rest(index)
            if left < len(rest):
                return index, int(rest[left])
            left -= len(rest)
        return None

    def candidate(self, root: Root, source_file: str) -> Candidate | None:
        """The file with this id, if it may match."""
        for scope in self.scopes:
            number = scope.table.number_of(source_file) if scope.root.id == root.id else None
            if number is not None and np.isin(number, scope.numbers):
                return scope.candidate(number)
        return None

    @property
    def notes(self) -> dict[str, str]:
        """`stopped` and `slow`, if there is something to say."""
        notes = {}
        if self.stopped:
            earlier = self.total - sum(len(self._rest(n)) for n in range(len(self.scopes)))
            read = earlier + self.done
            notes["stopped"] = (
                f"Stopped after {read:,} of {self.total:,} files: {SECONDS:g} seconds are "
                "over. Narrow with path, language or repository, or use a longer fixed part."
            )
        if self.unknown:
            notes["slow"] = f"{counted(self.unknown, 'file')} without n-grams were read one by one."
        return notes


@read_again
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
            for candidate, text, answer in batch.matched:
                root, file = candidate.root, candidate.file
                # The process that matches may still have a file open that is gone.
                if text is None and (answer is None or look.mode == "lines"):
                    text = _other_text(root, file)
                    if text is None:
                        continue  # `marked` tells
                if answer is None:
                    (answer,) = work.call(in_texts, look, [(candidate.key, text or b"")])
                if answer:
                    yield FileMatches(root, file, text or b"", answer)
            search.done += batch.size


def _other_text(root: Root, file: LiveFile) -> bytes | None:
    text = texts_of_live(root, [file]).get(file.document)
    return None if text is None else text.encode()


def _segments() -> list[Segment]:
    """The n-gram index; without it, all files are read."""
    try:
        return get_grams().segments()
    except Unavailable as error:
        log.warning("n-grams cannot be read: %s", error.message)
        return []


# --- lines ----------------------------------------------------------------------------------------


def definition_hits(search: Search) -> Iterator[Hit]:
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
    for matches in found(search, files):
        texts[matches.file.document] = matches.data
        hits[matches.root.id, matches.file.document] = list(hits_of(matches, search.query.context))
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
            symbols += [
                (root, symbol)
                for symbol in known_definitions(root, name)
                if symbol.kind not in OUTLINE_ONLY and (ignore_case or symbol.name == name)
            ]
    symbols.sort(key=lambda pair: rank_of(pair[1]))
    return symbols[:MAX_DEFINITIONS]


def with_symbols(hits: Sequence[Hit]) -> list[Hit]:
    """The hits with the innermost definition that contains each."""
    outlines: dict[str, list[StoredSymbol]] = {}
    for hit in hits:
        if hit.source_file not in outlines:
            outlines[hit.source_file] = known_outline(hit.place.root, hit.source_file)
    return [replace(hit, symbol=_innermost(outlines[hit.source_file], hit.line)) for hit in hits]


def _innermost(symbols: Sequence[StoredSymbol], line: int) -> str:
    """The path of the smallest definition that contains a line; "" for none."""
    around = [symbol for symbol in symbols if symbol.start_line <= line <= symbol.end_line]
    return (
        min(around, key=lambda symbol: symbol.end_line - symbol.start_line).path if around else ""
    )
