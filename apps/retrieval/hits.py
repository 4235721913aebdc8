"""A match as the search page draws it."""

import textwrap
from dataclasses import dataclass

from django.utils.safestring import SafeString

from apps.retrieval.highlight import highlight_lines
from apps.retrieval.lines import Lines
from apps.retrieval.results import Match, passes


@dataclass(frozen=True)
class Hit(Lines):
    """One match with its highlighted lines. `weak`: beyond the cutoff, shown all the same."""

    match: Match
    lines: tuple[tuple[int | None, SafeString], ...]
    weak: bool


def hit_of(match: Match, cutoff: float | None, marks: frozenset[str]) -> Hit:
    """The match ready to draw: indentation common to all its lines removed, lines numbered.

    `marks`: the stems of the words to mark in it.
    """
    html = highlight_lines(
        textwrap.dedent(match.chunk), path=match.rel_path, language=match.language, marks=marks
    )
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
    )
