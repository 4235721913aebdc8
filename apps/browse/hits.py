"""Matches, definitions and references as the search page shows them."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from django.utils.safestring import SafeString

from apps.browse.conditions import Conditions
from apps.browse.finds import Find
from apps.browse.highlight import highlight_lines
from apps.browse.lines import Lines
from apps.browse.marks import counted, name_marked, spans_marked, words_of
from apps.lookup.symbols.types import Definition, Reference
from apps.lookup.texts.hits import Hit as LineMatch
from apps.retrieval.results import Match, passes

MAX_DEFINITION_LINES = 8


@dataclass(frozen=True)
class Hit(Lines):
    """A match with its highlighted lines."""

    match: Match
    lines: tuple[tuple[int | None, SafeString], ...]  # 1-based number or None, HTML
    weak: bool  # beyond the cutoff
    words: Sequence[tuple[str, int]]  # words of the query that it has, and how often
    exact: int  # how often it matches the exact texts and expressions
    find: Find = field(default_factory=Find)  # what was searched for

    @property
    def finding(self) -> dict[str, str]:
        return self.find.params


@dataclass(frozen=True)
class ExactHit(Lines):
    """A line that matches exactly, with lines around it."""

    lines: tuple[tuple[int, SafeString], ...]  # 1-based number, HTML
    exact: int  # as in Hit
    symbol: str  # path of the definition that contains the line; "" for none
    defines: bool  # the line is where the searched name is defined
    find: Find = field(default_factory=Find)  # what was searched for

    @property
    def finding(self) -> dict[str, str]:
        return self.find.params


def hit_of(match: Match, cutoff: float | None, text: str, conditions: Conditions) -> Hit:
    """A match of a query as the page shows it: without common indentation, with the words of its
    `text` marked, or what fulfils its conditions."""
    chunk = textwrap.dedent(match.chunk)
    marks = frozenset[str]() if conditions.required else words_of(text)
    html = highlight_lines(chunk, path=match.rel_path, language=match.language, marks=marks)
    spans = conditions.spans(chunk.split("\n")) if conditions.required else []
    if len(spans) == len(html):
        html = [
            spans_marked(*each) if each[1] else each[0] for each in zip(html, spans, strict=True)
        ]
    start = match.start_line
    numbers = [None if start is None else start + i for i in range(len(html))]
    weak = not passes(match, cutoff)
    return Hit(
        match.repo,
        match.rel_path,
        start,
        match.end_line,
        match,
        tuple(zip(numbers, html, strict=True)),
        weak,
        counted(match.chunk, text),
        sum(map(len, spans)),
        _find(text, conditions),
    )


def exact_hit(hit: LineMatch, conditions: Conditions) -> ExactHit:
    """A line as the page shows it."""
    place = hit.place
    raw = [*hit.before, *hit.text.split("\n"), *hit.after]
    html = highlight_lines("\n".join(raw), path=place.path, language=place.language)
    first, last = len(hit.before), len(raw) - len(hit.after)
    spans = conditions.spans(raw[first:last])
    if len(html) == len(raw):
        html[first:last] = [
            spans_marked(*each) for each in zip(html[first:last], spans, strict=True)
        ]
    lines = tuple((hit.line - first + index, line) for index, line in enumerate(html))
    return ExactHit(
        place.repo,
        place.path,
        hit.line,
        hit.end_line,
        lines,
        sum(map(len, spans)),
        hit.symbol,
        hit.defines,
        _find("", conditions),
    )


def _find(text: str, conditions: Conditions) -> Find:
    """What to step through in a file: the first exact text or expression, else the words."""
    for each in conditions.required:
        return Find(each.text, "text" if each.fixed else "regex")
    return Find.read({"find": text})


@dataclass(frozen=True)
class DefinitionHit(Lines):
    """A definition with its first lines."""

    definition: Definition
    lines: tuple[tuple[int, SafeString], ...]  # 1-based number, HTML
    more: int  # lines that are not shown

    @property
    def finding(self) -> dict[str, str]:
        return Find(self.definition.name, "text").params


@dataclass(frozen=True)
class ReferenceLine(Lines):
    """A line that contains a name."""

    reference: Reference
    html: SafeString
    used: str  # the name that it contains

    @property
    def finding(self) -> dict[str, str]:
        return Find(self.used, "text").params


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
    lines = tuple(
        (definition.start_line + index, name_marked(line, definition.name))
        for index, line in enumerate(html)
    )
    total = definition.end_line - definition.start_line + 1
    return DefinitionHit(
        place.repo,
        place.path,
        definition.start_line,
        definition.end_line,
        definition,
        lines,
        more=max(0, total - len(lines)),
    )


def reference_files(references: Iterable[Reference], name: str) -> list[ReferenceFile]:
    """References grouped by file, in their order, with each line highlighted and `name` marked."""
    files = groupby(references, key=lambda each: each.place)
    return [
        ReferenceFile(
            place.repo, place.path, None, None, tuple(_reference_line(each, name) for each in group)
        )
        for place, group in files
    ]


def _reference_line(reference: Reference, name: str) -> ReferenceLine:
    place, line = reference.place, reference.line
    (html,) = highlight_lines(reference.text.strip(), path=place.path, language=place.language)
    return ReferenceLine(
        place.repo, place.path, line, line, reference, name_marked(html, name), name
    )
