"""The source viewer: a file on disk, around the cited lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.utils.safestring import SafeString, mark_safe

from apps.browse.documents import DocumentLinks, can_render, rendered
from apps.browse.finds import Find
from apps.browse.highlight import highlight_range
from apps.browse.lines import Lines, code_url, fragment_url, source_url, span_of
from apps.browse.marks import name_marked
from apps.browse.notebook import CellWindow, cell_lines, window_of
from apps.browse.source_request import SOURCE, SourceRequest
from apps.code.cells import cells_of, lines_in_file
from apps.code.chunking import decode, digest_of, lines_of
from apps.code.notebooks import MAX_NOTEBOOK_BYTES, is_notebook_path
from apps.core.errors import CodeinfoError
from apps.index import problems
from apps.index.models import Root, SourceFile
from apps.index.paths import MappedPath, map_path
from apps.index.root_directory import read_content, read_file
from apps.lookup.cells import cell_label
from apps.lookup.citations import Comparison
from apps.lookup.ingested import known_outline, live_file, stored_lines
from apps.retrieval.repositories import find_root, repo_id

# Longer files are shown in windows: MARGIN lines before and after the cited ones.
MAX_LINES = 4_000
MARGIN = 1_000
# Lines of a block. Blocks away from the cited lines are plain until the reader comes near them.
BLOCK = 200
SHORT = 600  # lines of a window that is highlighted at once
NEAR = 100  # lines around the first cited one whose blocks are highlighted at once
# Characters that are shown of a line: 5,000, fewer if a file has many long lines.
MAX_LINE_CHARS, MIN_LINE_CHARS = 5_000, 500
MAX_LONG_CHARS = 2_000_000  # of all long lines together
END = 40  # characters of the end of a long line: it ends the string that was begun in it
LINES_URL = "/ui/code/lines"  # the highlighted lines of a block


@dataclass(frozen=True)
class SourceLine:
    number: int
    html: SafeString
    cited: bool

    def markup(self, *, near: int = 0) -> str:
        """The element of the line. near: the line where a passage that is gone has been.

        Not a template: rendering one for each of thousands of lines takes ten times as long.
        """
        state = " is-cited" if self.cited else " is-near" if self.number == near else ""
        number = self.number
        return (
            f'<span class="line{state}"><a class="ln" name="L{number}" href="#L{number}"'
            f' tabindex="-1">{number}</a>{self.html}\n</span>'
        )


class Gap(NamedTuple):
    """A link to another window of the file: as a page, and as a fragment for the pane."""

    url: str
    fragment: str


@dataclass(frozen=True)
class SourceBlock:
    """Consecutive lines of a window."""

    html: SafeString
    plain_url: str = ""  # where its highlighted lines are; "" if these are highlighted


@dataclass(frozen=True)
class SourceView(Lines):
    """A window of a file. `start` and `end` are the cited lines as they were ingested."""

    root_id: UUID
    place: MappedPath
    blocks: tuple[SourceBlock, ...]  # of the window
    total: int  # lines of the file
    before: int  # lines before the window
    after: int  # lines after the window
    unchanged: bool  # the file on disk is the ingested one
    shift: int = 0  # lines by which the cited passage has moved down since
    problem: str = ""  # why `lines` are the ingested ones and not those on disk
    unread: str = ""  # what the parser could not read of it
    passage: tuple[SourceLine, ...] = ()  # as ingested, if the file has it no more
    find: Find = field(default_factory=Find)
    matches: tuple[int, ...] = ()  # lines that `find` matches, the first of them
    more_matches: bool = False
    notebook: CellWindow | None = None  # instead of blocks
    document: SafeString = SafeString("")  # rendered Markdown instead of blocks
    has_preview: bool = False  # Markdown that can be rendered
    is_json: bool = False  # a notebook as it is in the file
    has_history: bool = False  # a commit was checked out at the last ingest
    cell_label: str = ""  # `cell 7, lines 3–9`: the cited lines in a notebook

    @property
    def other_view(self) -> Gap:
        """Links from the cells of a notebook, or rendered Markdown, to the file, or the other
        way."""
        view: dict[str, int | str] = {"view": SOURCE} if self.notebook or self.document else {}
        start, end = (None, None) if self.has_preview else (self.start, self.end)
        return self._links(start, end, **view)

    @property
    def find_query(self) -> str:
        """`finding` as a query string."""
        return urlencode(self.finding)

    @property
    def permalink(self) -> str:
        """The permalink of the file, without lines."""
        return code_url(self.repo, self.path)

    @property
    def host_path(self) -> str:
        return self.place.host_path

    @property
    def span(self) -> str:
        """The cited lines as they are shown: `371–377`, `12`, or "" if none are."""
        return span_of(*(line and line + self.shift for line in (self.start, self.end)))

    @property
    def cited(self) -> str:
        """`Lines 371–377`, `Line 12`, or "" if no lines are cited."""
        if self.cell_label:
            return self.cell_label.capitalize()
        return self.span and f"{'Line' if self.start == self.end else 'Lines'} {self.span}"

    @property
    def moved(self) -> str:
        """`moved 3 lines`, or "" if the passage is where it was ingested."""
        count = abs(self.shift)
        return f"moved {count:,} line{'' if count == 1 else 's'}" if count else ""

    @property
    def earlier(self) -> Gap:
        """The window before this one."""
        return self._window(max(1, self.before - MARGIN + 1))

    @property
    def later(self) -> Gap:
        """The window after this one."""
        return self._window(min(self.total, self.total - self.after + MARGIN))

    def links_to(self, line: int) -> Gap:
        """Links to a line: an anchor inside the window, otherwise the window around the line."""
        if self.notebook:
            line, is_shown = self.notebook.anchor(line)
        else:
            is_shown = not self.document and self.before < line <= self.total - self.after
        anchor = f"#L{line}"
        if is_shown:
            return Gap(anchor, anchor)
        is_whole = self.notebook or self.document
        links = self._links(line, line) if is_whole else self._window(line)
        return Gap(links.url + anchor, links.fragment + anchor)

    def _window(self, around: int) -> Gap:
        return self._links(self.start, self.end, around=around, **self.finding)

    def _links(self, start: int | None, end: int | None, **more: int | str) -> Gap:
        return Gap(
            source_url(self.repo, self.path, start, end, **more),
            fragment_url(self.repo, self.path, start, end, **more),
        )


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
    is_json: bool = False  # `lines` are those of the file of a notebook

    @property
    def language(self) -> str:
        return "json" if self.is_json else self.row.language

    def starts(self) -> list[int]:
        """The first lines of the definitions; none if the file has changed since."""
        is_ingested = self.unchanged or self.problem
        outline = known_outline(self.root, self.row.document) if is_ingested else []
        return [symbol.start_line for symbol in outline]


def read_source(request: SourceRequest) -> SourceText:
    """Read a live file from the disk, or as it was ingested if the disk does not have it any more.

    Raises NotFound REPO_NOT_FOUND or FILE_NOT_FOUND. Raises the errors of `read_content` if the
    file cannot be read and the stores do not have its text.
    """
    root = find_root(request.repo)
    row = live_file(root, request.path)
    try:
        data = read_content(Path(root.path), row.path)
        if request.as_source and is_notebook_path(row.path):
            whole = read_file(Path(root.path), row.path, MAX_NOTEBOOK_BYTES)
            is_same = digest_of(data, row.encoding) == row.sha256
            return SourceText(root, row, lines_of(decode(whole)), is_same, is_json=True)
    except CodeinfoError as error:
        stored = stored_lines(row)
        if not stored:
            raise
        return SourceText(root, row, stored, problem=error.message)
    lines = lines_of(decode(data, row.encoding))
    if digest_of(data, row.encoding) == row.sha256:
        return SourceText(root, row, lines, unchanged=True)
    return _changed_text(request, root, row, lines)


def _changed_text(
    request: SourceRequest, root: Root, row: SourceFile, lines: list[str]
) -> SourceText:
    """The file on disk, and the cited passage where it is now, or as ingested if it is gone."""
    stored = stored_lines(row) if request.start else None
    if not stored or not request.start or not request.end:
        return SourceText(root, row, lines)
    finding = Comparison(stored, lines).finding(request.start, request.end)
    if finding.start is None:
        return SourceText(root, row, lines, stored=stored)
    return SourceText(root, row, lines, shift=finding.start - request.start)


def open_source(request: SourceRequest) -> SourceView:
    """The window of a file around the cited passage. Raises as `read_source`."""
    text = read_source(request)
    passage: tuple[SourceLine, ...] = ()
    if text.stored is not None and request.start and request.end:
        last = min(request.end, len(text.stored), request.start + MAX_LINES)
        stored = replace(text, lines=text.stored, problem="as ingested")
        html = _shown(stored, request.start, last, request.find)
        passage = tuple(
            SourceLine(n, html_line, True) for n, html_line in enumerate(html, request.start)
        )
    return _view(request, text, passage)


def _view(request: SourceRequest, text: SourceText, passage: tuple[SourceLine, ...]) -> SourceView:
    root, row, lines = text.root, text.row, text.lines
    start, end = (line and line + text.shift for line in (request.start, request.end))
    first, last = _window(len(lines), replace(request, start=start, end=end))
    cited: Sequence[int] = () if text.stored is not None else range(start or 0, (end or -1) + 1)
    numbers, more = request.find.lines(lines)
    cells = cells_of(lines)
    if cells and request.cell and cells[0].in_file and text.stored is None:
        cited = cell_lines(cells, request.cell)
    links = DocumentLinks(root, row.path)
    notebook = window_of(cells, lines, cited, request.find, links) if cells else None
    has_preview = can_render(row.path, lines)
    is_preview = has_preview and request.is_whole
    document = rendered("\n".join(lines), links) if is_preview else SafeString("")
    return SourceView(
        repo=repo_id(root),
        path=row.path,
        root_id=root.id,
        place=map_path(root, row.path),
        blocks=() if notebook or document else tuple(_blocks(request, text, first, last, cited)),
        total=lines_in_file(lines),
        start=request.start,
        end=request.end,
        before=0 if notebook else first - 1,
        after=0 if notebook else len(lines) - last,
        unchanged=text.unchanged,
        shift=text.shift,
        problem=text.problem,
        unread=problems.of_parser(row.problem),
        passage=passage,
        find=request.find,
        finding=request.find.params,
        matches=tuple(numbers),
        more_matches=more,
        notebook=notebook,
        document=document,
        has_preview=has_preview,
        is_json=text.is_json,
        has_history=bool(root.commit),
        cell_label=cell_label(cells, *((cited[0], cited[-1]) if cited else (None, None))),
    )


def open_block(request: SourceRequest) -> SafeString:
    """The highlighted lines of the block that begins at `start`; none is cited. Raises as
    `read_source`."""
    text = read_source(replace(request, start=None, end=None))
    first = request.start or 1
    last = min(len(text.lines), request.end or first, first + BLOCK - 1)
    html = _shown(text, first, last, request.find, whole=True)
    lines = (SourceLine(number, html_line, False) for number, html_line in enumerate(html, first))
    return mark_safe("".join(line.markup() for line in lines))


def _window(total: int, request: SourceRequest) -> tuple[int, int]:
    """First and last line to show; last < first for an empty file."""
    if total <= MAX_LINES:
        return 1, total
    start = min(request.around or request.start or 1, total)
    end = start if request.around else min(request.end or start, total)
    # The cited lines may be many more than MAX_LINES.
    return max(1, start - MARGIN), min(total, end + MARGIN, start - MARGIN + MAX_LINES)


def _blocks(
    request: SourceRequest, text: SourceText, first: int, last: int, cited: Sequence[int]
) -> Iterator[SourceBlock]:
    """The lines of a window. Those near the cited ones are highlighted, in one range, so that the
    lexer begins once."""
    if last < first:
        return
    around = min(last, max(first, (cited[0] if cited else request.around or request.start) or 1))
    is_short = last - first < SHORT
    low = first if is_short else max(first, _block_of(around - NEAR))
    high = last if is_short else min(last, _block_of(around + NEAR) + BLOCK - 1)
    near = request.start or 0 if text.stored is not None else 0
    coloured = _shown(text, low, high, request.find)
    plain = [mark_safe(escape(line)) for line in _cut(text.lines)[first - 1 : last]]
    for start in range(_block_of(first), last + 1, BLOCK):
        begin, end = max(start, first), min(start + BLOCK - 1, last)
        is_plain = not low <= begin <= high
        html, offset = (plain, first) if is_plain else (coloured, low)
        lines = [
            SourceLine(number, html[number - offset], number in cited).markup(near=near)
            for number in range(begin, end + 1)
        ]
        url = _lines_url(text, begin, end, request.find) if is_plain else ""
        yield SourceBlock(mark_safe("".join(lines)), url)


def _lines_url(text: SourceText, start: int, end: int, find: Find) -> str:
    where = {"repo": repo_id(text.root), "path": text.row.path, "start": start, "end": end}
    return f"{LINES_URL}?{urlencode(where | find.params)}"


def _block_of(line: int) -> int:
    """The first line of the block of a line."""
    return (max(1, line) - 1) // BLOCK * BLOCK + 1


def _cut(lines: Sequence[str]) -> list[str]:
    """The lines of a file as they are shown: long ones are cut, the shorter the more there are."""
    count = sum(len(line) > MIN_LINE_CHARS for line in lines)
    room = max(MIN_LINE_CHARS, min(MAX_LINE_CHARS, MAX_LONG_CHARS // max(1, count)))
    return [
        line
        if len(line) <= room
        else f"{line[: room - END]} … {len(line) - room:,} more characters … {line[-END:]}"
        for line in lines
    ]


def _shown(
    text: SourceText, first: int, last: int, find: Find, *, whole: bool = False
) -> list[SafeString]:
    """The lines `first` to `last` as HTML, with what `find` looks for marked."""
    lines, row = text.lines, text.row
    if max(map(len, lines), default=0) > MAX_LINE_CHARS:
        lines = _cut(lines)
    html = highlight_range(
        lines,
        first,
        last,
        path=row.path,
        language=text.language,
        marks=find.words,
        whole=whole,
        starts=text.starts,
    )
    return [name_marked(line, find.name) for line in html] if find.name else html
