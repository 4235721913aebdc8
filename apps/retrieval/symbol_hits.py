"""Definitions and references as the search page draws them."""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from django.utils.safestring import SafeString

from apps.retrieval.highlight import highlight_lines
from apps.retrieval.lines import Lines
from apps.retrieval.marks import name_marked
from apps.retrieval.symbols.types import Definition, Reference

# Lines of a definition that are shown; the rest is one click away.
SHOWN = 8


@dataclass(frozen=True)
class DefinitionHit(Lines):
    """A definition with its first lines. `more`: how many are not shown."""

    definition: Definition
    lines: tuple[tuple[int, SafeString], ...]
    more: int


@dataclass(frozen=True)
class ReferenceLine(Lines):
    reference: Reference
    html: SafeString


@dataclass(frozen=True)
class ReferenceFile(Lines):
    """The lines of one file in which a name stands."""

    lines: tuple[ReferenceLine, ...]

    @property
    def by_word(self) -> bool:
        """Whether comments and strings may be among them."""
        return not all(line.reference.parsed for line in self.lines)


def definition_hit(definition: Definition) -> DefinitionHit:
    """A definition ready to draw: common indentation removed, its name marked."""
    place, text = definition.place, textwrap.dedent(definition.chunk)
    html = highlight_lines(text, path=place.path, language=place.language)[:SHOWN]
    lines = tuple(
        (definition.start_line + index, name_marked(line, definition.name))
        for index, line in enumerate(html)
    )
    whole = definition.end_line - definition.start_line + 1
    return DefinitionHit(
        place.repo,
        place.path,
        definition.start_line,
        definition.end_line,
        definition,
        lines,
        more=max(0, whole - len(lines)),
    )


def reference_files(references: Iterable[Reference], name: str) -> list[ReferenceFile]:
    """References by file, in their order, each line highlighted and the name marked."""
    files = groupby(references, key=lambda each: each.place)
    return [
        ReferenceFile(
            place.repo, place.path, None, None, tuple(_line(each, name) for each in group)
        )
        for place, group in files
    ]


def _line(reference: Reference, name: str) -> ReferenceLine:
    place, line = reference.place, reference.line
    (html,) = highlight_lines(reference.text.strip(), path=place.path, language=place.language)
    return ReferenceLine(place.repo, place.path, line, line, reference, name_marked(html, name))
