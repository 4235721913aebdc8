"""Find the lines that use a name as an identifier."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import NamedTuple

from apps.code.languages import BY_NAME, grammar_of
from apps.index.models import Root
from apps.index.parsing.finder import NameMatches, SourceText, get_finder
from apps.index.symbols import files_with_identifier
from apps.lookup.deadline import Deadline
from apps.lookup.ingested import ingested_lines, known_definitions
from apps.lookup.marking import marked
from apps.lookup.symbols.collect import collect_symbols
from apps.lookup.symbols.project import root_files
from apps.lookup.symbols.types import Listed, Place, Reference, SymbolQuery, longest_word
from apps.retrieval.overlaps import repeated_files
from apps.retrieval.paging import Page, Pager, Position, digest
from apps.retrieval.repositories import roots_named
from apps.retrieval.scope import narrowed

# Seconds in which the files of a page are parsed.
PARSE_SECONDS = 10.0
# Files that are parsed in one call, and for one page.
FILES_AT_ONCE = 16
MAX_FILES = 13 * FILES_AT_ONCE
# Characters of a line.
MAX_LINE = 300


class _File(NamedTuple):
    place: Place
    source_file: str  # SourceFile.document


@marked
def find_references(query: SymbolQuery, deadline: Deadline | None = None) -> Listed[Reference]:
    """At most `query.limit` lines that contain the last part of a name: its definitions, then the
    others by path, tests last.

    deadline: of the answer that they are for. None: files are parsed in PARSE_SECONDS; those that
    are left are searched for the word

    Definitions are marked. Comments and strings are left out if the language has a grammar. A
    position is a number of files, and of lines of the files behind them that are parsed at once.
    Raises InvalidInput CURSOR_INVALID, Conflict INGEST_REQUIRED and CURSOR_EXPIRED, and NotFound
    REPO_NOT_FOUND.
    """
    roots, filters = narrowed(roots_named(query.repositories), query.filters)
    pager = Pager.of("FindReferences", query, roots)
    query = replace(query, filters=filters)
    repeated = repeated_files(roots, filters)
    files = collect_symbols(roots, lambda root: _files(root, query))
    files = [file for file in files if file.place.path not in repeated.get(file.place.root.id, ())]
    defining = _defining(query.last, roots)
    files.sort(key=lambda file: (file.place.is_last, file.source_file not in defining))
    first, skipped = (*pager.start, 0, 0)[:2]
    last = first + MAX_FILES
    placed = _references(query.last, files[:last], first, deadline)
    earlier = list(islice(placed, skipped))
    # If the folder is ingested again, the files may be others.
    listed = digest([(file.place.root.id.hex, file.place.path) for file in files])
    pager.check((listed, _place(earlier[-1][1]) if earlier else None))
    rows = list(islice(placed, query.limit + 1))
    shown = rows[: query.limit]

    def after(count: int) -> str:
        if count == len(shown) == len(rows):
            return pager.cursor((last, 0), (listed, None))
        position, line = shown[count - 1]
        return pager.cursor(position, (listed, _place(line)))

    more = len(rows) > query.limit or len(files) > last
    lines = tuple(line for _, line in shown)
    return Listed(query.last, lines, more, page=Page(len(shown), after, more))


def _place(line: Reference) -> tuple[str, str, int]:
    return line.place.root.id.hex, line.place.path, line.line


def _defining(name: str, roots: Sequence[Root]) -> set[str]:
    """The documents with a definition of exactly this name. Only the order of the lines
    depends on them."""
    symbols = [symbol for root in roots for symbol in known_definitions(root, name)]
    return {symbol.source_file for symbol in symbols if symbol.name == name}


def _files(root: Root, query: SymbolQuery) -> Iterator[_File]:
    """The live files that contain the name, by path."""
    live = root_files(root).files
    for document, path in files_with_identifier(root, longest_word(query.last)).items():
        language = live[path].language if path in live else ""
        prose = (kind := BY_NAME.get(language)) and kind.prose
        if not prose and query.takes(root, path, language):
            yield _File(Place(root, path, language), document)


def _references(
    name: str, files: Sequence[_File], first: int, deadline: Deadline | None
) -> Iterator[tuple[Position, Reference]]:
    """The lines of the files from the first on, each with the position behind it. Of the files that
    are parsed at once, definitions come first: so the order is that of any other page."""
    until = deadline or Deadline(PARSE_SECONDS)
    for start in range(first, len(files), FILES_AT_ONCE):
        batch = files[start : start + FILES_AT_ONCE]
        if deadline and deadline.is_over:
            for file in batch:
                deadline.leave_out(file.place.root, [file.place.path])
            continue
        texts = _source_texts(batch)
        matches = get_finder().find(name, texts, until.left)
        lines = [
            line
            for file, text, names in zip(batch, texts, matches, strict=True)
            for line in _lines(file.place, text.lines, names)
        ]
        lines.sort(key=lambda line: (line.place.is_last, not line.defines))
        yield from (((start, count), line) for count, line in enumerate(lines, 1))


def _source_texts(files: Sequence[_File]) -> list[SourceText]:
    lines = ingested_lines((file.place.root, file.source_file) for file in files)
    return [
        SourceText(
            file.place.path, grammar_of(file.place.language), lines.get(file.source_file, [])
        )
        for file in files
    ]


def _lines(place: Place, lines: Sequence[str], matches: NameMatches) -> Iterator[Reference]:
    for row, group in groupby(matches.occurrences, key=lambda occurrence: occurrence.row):
        occurrences = list(group)
        yield Reference(
            place=place,
            line=row + 1,
            columns=tuple(occurrence.column + 1 for occurrence in occurrences),
            text=lines[row][:MAX_LINE],
            symbol=occurrences[0].symbol,
            defines=any(occurrence.defines for occurrence in occurrences),
            parsed=matches.parsed,
        )
