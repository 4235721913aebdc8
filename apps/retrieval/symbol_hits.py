"""Definitions and references as the search page draws them."""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlencode

from django.utils.safestring import SafeString

from apps.retrieval.highlight import highlight_lines
from apps.retrieval.marks import name_marked
from apps.retrieval.symbols.types import Definition, Place, Reference

# Lines of a definition that are shown; the rest is one click away.
SHOWN = 8


def source_url(place: Place, start: int, end: int) -> str:
    """The source viewer at these lines."""
    query = {"repo": place.repo, "path": place.path, "start": start, "end": end}
    return f"/ui/retrieval/source?{urlencode(query)}#L{start}"


@dataclass(frozen=True)
class _InFile:
    place: Place

    @property
    def folder(self) -> str:
        """Repository and directories, up to the file's own name."""
        path = f"{self.place.repo}/{self.place.path}"
        return path[: path.rindex("/") + 1]

    @property
    def name(self) -> str:
        return self.place.path.rpartition("/")[2]


@dataclass(frozen=True)
class DefinitionHit(_InFile):
    """A definition with its first lines. `more`: how many are not shown."""

    definition: Definition
    lines: tuple[tuple[int, SafeString], ...]
    more: int

    @property
    def span(self) -> str:
        """`371–377` or `12`."""
        start, end = self.definition.start_line, self.definition.end_line
        return str(start) if start == end else f"{start}–{end}"

    @property
    def citation(self) -> str:
        """What a person pastes elsewhere: `repo/path:start-end`."""
        return f"{self.place.repo}/{self.place.path}:{self.span.replace('–', '-')}"

    @property
    def url(self) -> str:
        return source_url(self.place, self.definition.start_line, self.definition.end_line)


@dataclass(frozen=True)
class ReferenceLine:
    reference: Reference
    html: SafeString

    @property
    def url(self) -> str:
        return source_url(self.reference.place, self.reference.line, self.reference.line)


@dataclass(frozen=True)
class ReferenceFile(_InFile):
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
    return DefinitionHit(place, definition, lines, more=max(0, whole - len(lines)))


def reference_files(references: Iterable[Reference], name: str) -> list[ReferenceFile]:
    """References by file, in their order, each line highlighted and the name marked."""
    files = groupby(references, key=lambda each: each.place)
    return [
        ReferenceFile(place, tuple(_line(reference, name) for reference in group))
        for place, group in files
    ]


def _line(reference: Reference, name: str) -> ReferenceLine:
    place = reference.place
    (html,) = highlight_lines(reference.text.strip(), path=place.path, language=place.language)
    return ReferenceLine(reference, name_marked(html, name))
