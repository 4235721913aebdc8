"""Matches, definitions and references as the search page shows them."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.utils.safestring import SafeString

from apps.browse.box import Box
from apps.browse.facets import counts_of
from apps.browse.finds import find_params
from apps.browse.highlight import highlight_lines
from apps.browse.lines import Lines
from apps.browse.marks import counted, name_marked, spans_marked, words_of
from apps.browse.page_query import PageQuery
from apps.index.types import FileKey
from apps.lookup.cells import cell_label, notebook_cells
from apps.lookup.symbols.types import Definition, Reference
from apps.lookup.texts.hits import Hit as LineMatch
from apps.retrieval.results import Match, passes

MAX_DEFINITION_LINES = 8


@dataclass(frozen=True)
class FileRow(Lines):
    """A file with results."""

    count: int  # its lines that match; 0 if they were not counted


@dataclass(frozen=True)
class Hit(Lines):
    """A match, or a line that matches exactly with lines around it, as the page shows it."""

    lines: tuple[tuple[int | None, SafeString], ...]  # 1-based number or None, HTML
    exact: int  # how often it matches the exact texts and expressions
    # Of a match:
    match: Match | None = None
    weak: bool = False  # beyond the cutoff
    words: Sequence[tuple[str, int]] = ()  # words of the query that it has, and how often
    # Of a line:
    symbol: str = ""  # path of the definition that contains it; "" for none
    defines: bool = False  # the searched name is defined in it


def hit_of(match: Match, cutoff: float | None, box: Box) -> Hit:
    """A match of a query as the page shows it: without common indentation, with the words of its
    `text` marked, or what fulfils its conditions."""
    chunk = textwrap.dedent(match.chunk)
    marks = frozenset[str]() if box.required else words_of(box.text)
    html = highlight_lines(chunk, path=match.rel_path, language=match.language, marks=marks)
    spans = box.spans(chunk.split("\n")) if box.required else []
    if len(spans) == len(html):
        html = list(map(spans_marked, html, spans))
    start = match.start_line
    numbers = [None if start is None else start + i for i in range(len(html))]
    return Hit(
        match.repo,
        match.rel_path,
        start,
        match.end_line,
        tuple(zip(numbers, html, strict=True)),
        sum(map(len, spans)),
        match,
        not passes(match, cutoff),
        counted(match.chunk, box.text),
        finding=_finding(box) or find_params(box.text),
        cell=cell_label(notebook_cells(match.repo, match.rel_path), start, match.end_line),
    )


def exact_hit(hit: LineMatch, box: Box) -> Hit:
    """A line as the page shows it."""
    place = hit.place
    raw = [*hit.before, *hit.text.split("\n"), *hit.after]
    html = highlight_lines("\n".join(raw), path=place.path, language=place.language)
    first, last = len(hit.before), len(raw) - len(hit.after)
    spans = box.spans(raw[first:last])
    if len(html) == len(raw):
        html[first:last] = map(spans_marked, html[first:last], spans)
    return Hit(
        place.repo,
        place.path,
        hit.line,
        hit.end_line,
        tuple((hit.line - first + index, line) for index, line in enumerate(html)),
        sum(map(len, spans)),
        symbol=hit.symbol,
        defines=hit.defines,
        finding=_finding(box),
        cell=cell_label(notebook_cells(place.repo, place.path), hit.line, hit.end_line),
    )


def groups(
    query: PageQuery, hits: Sequence[Hit], results: Mapping[FileKey, int]
) -> list[dict[str, Any]]:
    """The hits of a page by repository, that of the best hit first, each hit with its number among
    all. One group without a heading, if all results are of one repository.

    results: the number of those of each file
    """
    numbered = list(enumerate(hits, (query.page - 1) * query.limit + 1))
    counts = counts_of(results)["Repository"]
    if len(counts) < 2:
        return [{"hits": numbered}]
    by_repository: dict[str, list[tuple[int, Hit]]] = {}
    for number, hit in numbered:
        by_repository.setdefault(hit.repo, []).append((number, hit))
    return [
        {"repository": name, "count": counts[name], "url": query.url(repositories=(name,))}
        | {"hits": of_group}
        for name, of_group in by_repository.items()
    ]


def file_groups(
    query: PageQuery, hits: Sequence[Hit], counts: Mapping[FileKey, int]
) -> list[dict[str, Any]]:
    """The lines of a page by file, each with its number among all. counts: lines of each file"""
    numbered = enumerate(hits, (query.page - 1) * query.limit + 1)
    lines = {(repo, path): count for (repo, path, _), count in counts.items()}
    by_file = groupby(numbered, key=lambda pair: (pair[1].repo, pair[1].path))
    return [
        {"file": FileRow(*file, None, None, lines.get(file, 0)), "hits": list(of_file)}
        for file, of_file in by_file
    ]


def _finding(box: Box) -> dict[str, str]:
    """What to step through in a file: the first exact text or expression."""
    for pattern in box.required:
        return find_params(pattern.text, "text" if pattern.fixed else "regex")
    return {}


@dataclass(frozen=True)
class DefinitionHit(Lines):
    """A definition with its first lines."""

    definition: Definition
    lines: tuple[tuple[int, SafeString], ...]  # 1-based number, HTML
    more: int  # lines that are not shown


@dataclass(frozen=True)
class ReferenceLine(Lines):
    """A line that contains a name."""

    reference: Reference
    html: SafeString


@dataclass(frozen=True)
class ReferenceFile(Lines):
    """The lines of one file that contain a name."""

    lines: tuple[ReferenceLine, ...]

    @property
    def by_word(self) -> bool:
        """Return True if comments and strings may be among the lines."""
        return not all(line.reference.parsed for line in self.lines)


def definition_hit(definition: Definition) -> DefinitionHit:
    """A definition as the page shows it: without common indentation, with its name marked."""
    place, text = definition.place, textwrap.dedent(definition.chunk)
    html = highlight_lines(text, path=place.path, language=place.language)[:MAX_DEFINITION_LINES]
    start = definition.start_line
    lines = tuple((n, name_marked(line, definition.name)) for n, line in enumerate(html, start))
    total = definition.end_line - start + 1
    return DefinitionHit(
        place.repo,
        place.path,
        start,
        definition.end_line,
        definition,
        lines,
        more=max(0, total - len(lines)),
        cell=cell_label(notebook_cells(place.repo, place.path), start, definition.end_line),
        finding=find_params(definition.name, "text"),
    )


def reference_files(references: Iterable[Reference], name: str) -> list[ReferenceFile]:
    """References grouped by file, in their order, with each line highlighted and `name` marked."""
    files = []
    for place, group in groupby(references, key=lambda reference: reference.place):
        lines = tuple(_reference_line(reference, name) for reference in group)
        files.append(ReferenceFile(place.repo, place.path, None, None, lines))
    return files


def _reference_line(reference: Reference, name: str) -> ReferenceLine:
    place, line = reference.place, reference.line
    (html,) = highlight_lines(reference.text.strip(), path=place.path, language=place.language)
    marked, finding = name_marked(html, name), find_params(name, "text")
    return ReferenceLine(place.repo, place.path, line, line, reference, marked, finding=finding)
