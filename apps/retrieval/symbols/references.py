"""Find the lines that use a name as an identifier."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import NamedTuple

from apps.code.languages import FILE_TYPES
from apps.code.paths import kinds
from apps.core.errors import Unavailable
from apps.index import sharing
from apps.index.lexical import StoredSymbol, get_lexical
from apps.index.models import Root
from apps.index.parsing.finder import NameMatches, SourceText, get_finder
from apps.index.queries import live_file_ids
from apps.retrieval.ingested import ingested_lines
from apps.retrieval.overlaps import repeated_files
from apps.retrieval.query import fits
from apps.retrieval.repositories import roots_named
from apps.retrieval.scope import narrowed
from apps.retrieval.symbols.collect import collect_symbols
from apps.retrieval.symbols.definitions import LAST_FILES
from apps.retrieval.symbols.types import WORD, Place, Reference, References, SymbolQuery

KINDS = {kind.name: kind for kind in FILE_TYPES}
# Limits of one query: chunks of each root, files that are read and parsed.
MAX_CHUNKS = 5_000
MAX_FILES = 200
# Files that are not parsed after these seconds are searched for the word.
PARSE_SECONDS = 10.0
# Files that are parsed in one call.
FILES_AT_ONCE = 16
# Characters of a line.
MAX_LINE = 300


class _File(NamedTuple):
    place: Place
    source_file: str  # SourceFile.document


def find_references(query: SymbolQuery) -> References:
    """At most `query.limit` lines that contain the last part of a name: its definitions, then the
    others by path, tests last.

    Definitions are marked. Comments and strings are left out if the language has a
    grammar. Raises Conflict INGEST_REQUIRED and NotFound REPO_NOT_FOUND.
    """
    roots, filters = narrowed(roots_named(query.repositories), query.filters)
    query = replace(query, filters=filters)
    repeated = repeated_files(roots, filters)
    files, degraded = collect_symbols(roots, lambda root: list(_files(root, query)))
    files = [file for file in files if file.place.path not in repeated.get(file.place.root.id, ())]
    defining = _defining(query.last, roots)
    files.sort(key=lambda file: (_is_last(file.place), file.source_file not in defining))
    lines = list(islice(_references(query.last, files[:MAX_FILES]), query.limit + 1))
    lines.sort(key=lambda line: (_is_last(line.place), not line.defines))
    truncated = len(lines) > query.limit or len(files) > MAX_FILES
    return References(query.last, tuple(lines[: query.limit]), truncated, degraded)


def _is_last(place: Place) -> bool:
    return bool(kinds(place.path) & LAST_FILES)


def _defining(name: str, roots: Sequence[Root]) -> set[str]:
    """The documents with a definition of exactly this name. Only the order of the lines
    depends on them."""
    symbols = [each for root in roots for each in _stored(root, name)]
    return {each.source_file for each in symbols if each.name == name}


def _stored(root: Root, name: str) -> Sequence[StoredSymbol]:
    try:
        return get_lexical().definitions(root.store, name, sharing.reader(root))
    except Unavailable:
        return ()  # `collect_symbols` has told


def _files(root: Root, query: SymbolQuery) -> Iterator[_File]:
    """The live files that contain the name, by path. Looks up its longest word: for `valid?` the
    index has `valid`."""
    word = max(WORD.findall(query.last), key=len)
    store, live = get_lexical(), live_file_ids(root)
    ids = store.chunks_with_identifier(root.store, word, MAX_CHUNKS, sharing.reader(root))
    facts = store.facts(root.store, ids)
    files = {each.source_file: each for each in facts.values() if each.source_file in live}
    for each in sorted(files.values(), key=lambda each: each.path):
        prose = (kind := KINDS.get(each.language)) and kind.prose
        if not prose and fits(query.filters, root, each.path, each.language):
            yield _File(Place(root, each.path, each.language), each.source_file)


def _references(name: str, files: Sequence[_File]) -> Iterator[Reference]:
    until = time.monotonic() + PARSE_SECONDS
    for start in range(0, len(files), FILES_AT_ONCE):
        batch = files[start : start + FILES_AT_ONCE]
        texts = _source_texts(batch)
        matches = get_finder().find(name, texts, until - time.monotonic())
        for file, text, names in zip(batch, texts, matches, strict=True):
            yield from _lines(file.place, text.lines, names)


def _source_texts(files: Sequence[_File]) -> list[SourceText]:
    lines = ingested_lines((file.place.root, file.source_file) for file in files)
    return [
        SourceText(file.place.path, _grammar(file.place.language), lines.get(file.source_file, []))
        for file in files
    ]


def _grammar(language: str) -> str:
    kind = KINDS.get(language)
    return kind.grammar if kind else ""


def _lines(place: Place, lines: Sequence[str], matches: NameMatches) -> Iterator[Reference]:
    for row, group in groupby(matches.occurrences, key=lambda each: each.row):
        occurrences = list(group)
        yield Reference(
            place=place,
            line=row + 1,
            columns=tuple(each.column + 1 for each in occurrences),
            text=lines[row][:MAX_LINE],
            symbol=occurrences[0].symbol,
            defines=any(each.defines for each in occurrences),
            parsed=matches.parsed,
        )
