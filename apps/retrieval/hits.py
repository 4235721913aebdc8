"""A match as the search page draws it."""

import textwrap
from dataclasses import dataclass
from urllib.parse import urlencode

from django.utils.safestring import SafeString

from apps.retrieval.highlight import highlight_lines
from apps.retrieval.pipeline import passes
from apps.retrieval.types import Match


@dataclass(frozen=True)
class Hit:
    """One match with its highlighted lines. `weak`: beyond the cutoff, shown all the same."""

    match: Match
    lines: tuple[tuple[int | None, SafeString], ...]
    weak: bool

    @property
    def folder(self) -> str:
        """Repository and directories, up to the file's own name."""
        path = f"{self.match.repo}/{self.match.rel_path}"
        return path[: path.rindex("/") + 1]

    @property
    def name(self) -> str:
        return self.match.rel_path.rpartition("/")[2]

    @property
    def span(self) -> str:
        """`371–377`, `12`, or nothing where the lines are not known."""
        start, end = self.match.start_line, self.match.end_line
        if start is None or end is None:
            return ""
        return str(start) if start == end else f"{start}–{end}"

    @property
    def citation(self) -> str:
        """What a person pastes elsewhere: `repo/path:start-end`."""
        path = f"{self.match.repo}/{self.match.rel_path}"
        return f"{path}:{self.span.replace('–', '-')}" if self.span else path

    @property
    def source_url(self) -> str:
        """The source viewer at these lines."""
        match = self.match
        params = {"repo": match.repo, "path": match.rel_path}
        lines = {"start": match.start_line, "end": match.end_line}
        given = {key: value for key, value in lines.items() if value is not None}
        anchor = f"#L{match.start_line}" if match.start_line else ""
        return f"/ui/retrieval/source?{urlencode(params | given)}{anchor}"


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
    return Hit(match, tuple(zip(numbers, html, strict=True)), weak)
