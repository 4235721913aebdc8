"""The source viewer: a file on disk, around the cited lines."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.utils.safestring import SafeString

from apps.code.chunking import decode, lines_of
from apps.core.errors import InvalidInput
from apps.index.models import SourceFile
from apps.index.paths import map_path
from apps.index.root_directory import read_file
from apps.retrieval.highlight import MAX_CHARS, highlight_lines
from apps.retrieval.ingested import live_file
from apps.retrieval.lines import Lines, source_url
from apps.retrieval.repositories import find_root, repo_id

# Longer files are shown in windows: MARGIN lines before and after the cited ones.
MAX_LINES = 2000
MARGIN = 400


@dataclass(frozen=True)
class SourceRequest:
    """A file and its cited lines."""

    repo: str  # repository id
    path: str  # within the repository
    start: int | None = None  # first cited line, 1-based; None: no lines
    end: int | None = None  # last cited line, included
    around: int | None = None  # line of the window in a long file, instead of the cited lines

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "SourceRequest":
        """Check `repo, path, start?, end?, around?`. Raises InvalidInput with all problems."""
        problems = [f"{name} is required" for name in ("repo", "path") if not data.get(name)]
        if "\0" in data.get("path", ""):
            problems.append("path must not hold a NUL")
        numbers: dict[str, int | None] = {}
        for name in ("start", "end", "around"):
            try:
                numbers[name] = _line(data.get(name))
            except ValueError:
                problems.append(f"{name} must be a line number")
        if problems:
            raise InvalidInput(", ".join(problems), details={"details": problems})
        start, end = numbers["start"], numbers["end"]
        if start and end and end < start:
            raise InvalidInput("end must not be before start")
        return cls(data["repo"], data["path"], start, end or start, numbers["around"])


@dataclass(frozen=True)
class SourceLine:
    number: int
    html: SafeString
    cited: bool


@dataclass(frozen=True)
class SourceView(Lines):
    """A window of a file. `start` and `end` are the cited lines."""

    host_path: str
    lines: tuple[SourceLine, ...]  # of the window
    total: int  # lines of the file
    before: int  # lines before the window
    after: int  # lines after the window
    unchanged: bool  # the file on disk is the ingested one

    @property
    def cited(self) -> str:
        """`Lines 371–377`, `Line 12`, or "" if no lines are cited."""
        return self.span and f"{'Line' if self.start == self.end else 'Lines'} {self.span}"

    @property
    def earlier_url(self) -> str:
        """The window before this one."""
        return self._url(max(1, self.before - MARGIN + 1))

    @property
    def later_url(self) -> str:
        """The window after this one."""
        return self._url(min(self.total, self.total - self.after + MARGIN))

    def url_of(self, line: int) -> str:
        """A link to a line: an anchor inside the window, otherwise the window around the line."""
        shown = self.before < line <= self.total - self.after
        return f"#L{line}" if shown else f"{self._url(line)}#L{line}"

    def _url(self, around: int) -> str:
        return source_url(self.repo, self.path, self.start, self.end, around=around)


def open_source(request: SourceRequest) -> SourceView:
    """Read a live file from the disk.

    Raises NotFound REPO_NOT_FOUND or FILE_NOT_FOUND, and the errors of `read_file` if the file was
    deleted, is too large, or is not a regular file inside its root.
    """
    root = find_root(request.repo)
    row = live_file(root, request.path)
    data = read_file(Path(root.path), row.path)
    lines = lines_of(decode(data))
    first, last = _window(len(lines), request)
    cited = range(request.start or 0, (request.end or -1) + 1)
    shown = enumerate(_highlighted(lines, first, last, row), first)
    return SourceView(
        repo=repo_id(root),
        path=row.path,
        host_path=map_path(root, row.path).host_path,
        lines=tuple(SourceLine(number, html, number in cited) for number, html in shown),
        total=len(lines),
        start=request.start,
        end=request.end,
        before=first - 1,
        after=len(lines) - last,
        unchanged=hashlib.sha256(data).hexdigest() == row.sha256,
    )


def _line(value: Any) -> int | None:
    number = int(value) if value else None
    if number is not None and number < 1:
        raise ValueError
    return number


def _window(total: int, request: SourceRequest) -> tuple[int, int]:
    """First and last line to show; last < first for an empty file."""
    if total <= MAX_LINES:
        return 1, total
    start = min(request.around or request.start or 1, total)
    end = start if request.around else min(request.end or start, total)
    # The cited lines may be many more than MAX_LINES.
    return max(1, start - MARGIN), min(total, end + MARGIN, start - MARGIN + MAX_LINES)


def _highlighted(lines: list[str], first: int, last: int, row: SourceFile) -> list[SafeString]:
    """The lines of the window as HTML. Lexes the whole file if it is small enough, since a window
    may begin inside a string or comment."""
    text = "\n".join(lines)
    if len(text) <= MAX_CHARS:
        return highlight_lines(text, path=row.path, language=row.language)[first - 1 : last]
    window = "\n".join(lines[first - 1 : last])
    return highlight_lines(window, path=row.path, language=row.language)
