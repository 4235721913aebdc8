"""The source viewer: a file on disk, around the cited lines."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from django.utils.safestring import SafeString

from apps.code.chunking import decode, lines_of
from apps.core.errors import CodeinfoError, InvalidInput
from apps.index.models import Root, SourceFile
from apps.index.paths import map_path
from apps.index.root_directory import read_file
from apps.retrieval.highlight import MAX_CHARS, highlight_lines
from apps.retrieval.ingested import live_file, stored_lines
from apps.retrieval.lines import Lines, source_url, span_of
from apps.retrieval.repositories import find_root, repo_id

# Longer files are shown in windows: MARGIN lines before and after the cited ones.
MAX_LINES = 2000
MARGIN = 400
# Places at which a passage that moved is looked for: its first line may be in every other one.
MAX_STARTS = 1000


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
    """A window of a file. `start` and `end` are the cited lines as they were ingested."""

    root_id: UUID
    host_path: str
    lines: tuple[SourceLine, ...]  # of the window
    total: int  # lines of the file
    before: int  # lines before the window
    after: int  # lines after the window
    unchanged: bool  # the file on disk is the ingested one
    shift: int = 0  # lines by which the cited passage has moved down since
    problem: str = ""  # why `lines` are the ingested ones and not those on disk
    passage: tuple[SourceLine, ...] = ()  # as ingested, if the file has it no more

    @property
    def span(self) -> str:
        """The cited lines as they are shown: `371–377`, `12`, or "" if none are."""
        return span_of(*(line and line + self.shift for line in (self.start, self.end)))

    @property
    def cited(self) -> str:
        """`Lines 371–377`, `Line 12`, or "" if no lines are cited."""
        return self.span and f"{'Line' if self.start == self.end else 'Lines'} {self.span}"

    @property
    def moved(self) -> str:
        """`moved 3 lines`, or "" if the passage is where it was ingested."""
        count = abs(self.shift)
        return f"moved {count:,} line{'' if count == 1 else 's'}" if count else ""

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


@dataclass(frozen=True)
class SourceText:
    """The lines of a file as they are now, and where the cited ones are among them."""

    root: Root
    row: SourceFile
    lines: list[str]  # on disk, or as ingested if `problem` is set
    unchanged: bool = False  # the file on disk is the ingested one
    problem: str = ""  # why `lines` are the ingested ones and not those on disk
    shift: int = 0  # lines by which the cited passage has moved down since
    stored: list[str] | None = None  # all lines as ingested, if the file has the passage no more


def read_source(request: SourceRequest) -> SourceText:
    """Read a live file from the disk, or as it was ingested if the disk does not have it any more.

    Raises NotFound REPO_NOT_FOUND or FILE_NOT_FOUND. Raises the errors of `read_file` if the file
    cannot be read and the stores do not have its text.
    """
    root = find_root(request.repo)
    row = live_file(root, request.path)
    try:
        data = read_file(Path(root.path), row.path)
    except CodeinfoError as error:
        stored = stored_lines(root, row)
        if not stored:
            raise
        return SourceText(root, row, stored, problem=error.message)
    lines = lines_of(decode(data))
    if hashlib.sha256(data).hexdigest() == row.sha256:
        return SourceText(root, row, lines, unchanged=True)
    return _changed_text(request, root, row, lines)


def _changed_text(
    request: SourceRequest, root: Root, row: SourceFile, lines: list[str]
) -> SourceText:
    """The file on disk, and the cited passage where it is now, or as ingested if it is gone."""
    stored = stored_lines(root, row) if request.start else None
    if not stored or not request.start or not request.end:
        return SourceText(root, row, lines)
    at = find_passage(stored[request.start - 1 : request.end], lines, request.start)
    if at is None:
        return SourceText(root, row, lines, stored=stored)
    return SourceText(root, row, lines, shift=at - request.start)


def open_source(request: SourceRequest) -> SourceView:
    """The window of a file around the cited passage. Raises as `read_source`."""
    text = read_source(request)
    passage: tuple[SourceLine, ...] = ()
    if text.stored is not None and request.start and request.end:
        last = min(request.end, len(text.stored), request.start + MAX_LINES)
        html = _highlighted(text.stored, request.start, last, text.row)
        passage = tuple(SourceLine(n, each, True) for n, each in enumerate(html, request.start))
    return _view(request, text, passage)


def find_passage(passage: Sequence[str], lines: Sequence[str], near: int) -> int | None:
    """The line (1-based) at which the lines of a passage are, the nearest to `near`; None if they
    are not. Blank lines around the passage and space at the ends of lines do not count."""
    expected = [line.rstrip() for line in passage]
    leading = next((n for n, line in enumerate(expected) if line), None)
    if leading is None:
        return None
    while not expected[-1]:
        expected.pop()
    expected = expected[leading:]
    text = [line.rstrip() for line in lines]
    starts = [n for n, line in enumerate(text) if line == expected[0]]
    starts.sort(key=lambda n: abs(n + 1 - leading - near))
    found = (n for n in starts[:MAX_STARTS] if text[n : n + len(expected)] == expected)
    at = next(found, None)
    return None if at is None else max(1, at + 1 - leading)


def _view(request: SourceRequest, text: SourceText, passage: tuple[SourceLine, ...]) -> SourceView:
    root, row, lines = text.root, text.row, text.lines
    start, end = (line and line + text.shift for line in (request.start, request.end))
    first, last = _window(len(lines), replace(request, start=start, end=end))
    cited = () if text.stored is not None else range(start or 0, (end or -1) + 1)
    html = enumerate(_highlighted(lines, first, last, row), first)
    return SourceView(
        repo=repo_id(root),
        path=row.path,
        root_id=root.id,
        host_path=map_path(root, row.path).host_path,
        lines=tuple(SourceLine(number, each, number in cited) for number, each in html),
        total=len(lines),
        start=request.start,
        end=request.end,
        before=first - 1,
        after=len(lines) - last,
        unchanged=text.unchanged,
        shift=text.shift,
        problem=text.problem,
        passage=passage,
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
