"""A notebook as the viewer shows it: Markdown rendered, code highlighted, without outputs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString, mark_safe

from apps.browse.documents import Links, rendered
from apps.browse.finds import Find
from apps.browse.highlight import highlight_lines
from apps.browse.marks import name_marked
from apps.code.cells import MARKDOWN, RAW, Cell, notebook_language

# What is shown at once: as many cells as have about these lines, at least one.
MAX_LINES = 4_000
# Cells shown before the cited one, of a notebook that is not shown whole.
BEFORE = 20
_NAMES = {MARKDOWN: "Markdown", RAW: "Raw"}


@dataclass(frozen=True)
class CellView:
    """A cell of a page."""

    number: int
    kind: str  # Markdown, Raw, or the language
    is_prose: bool
    html: SafeString  # of prose one element, of code one for each line
    first: int  # its first line, 1-based
    last: int  # its last, included


@dataclass(frozen=True)
class CellWindow:
    """Consecutive cells of a notebook."""

    cells: tuple[CellView, ...]
    before: int  # cells before them
    after: int  # cells after them

    def anchor(self, line: int) -> tuple[int, bool]:
        """The line to go to for a line of the text: prose has its first one only. And whether it
        is shown."""
        for cell in self.cells:
            if cell.first <= line <= cell.last:
                return (cell.first if cell.is_prose else line), True
        return line, False


def cell_lines(cells: Sequence[Cell], number: int) -> range:
    """The lines of the text, 1-based, that are a cell's."""
    return next((range(c.first + 1, c.end + 1) for c in cells if c.number == number), range(0))


def window_of(
    cells: Sequence[Cell], lines: Sequence[str], cited: Sequence[int], find: Find, links: Links
) -> CellWindow:
    """The cells of a notebook, around the first cited line.

    lines: of the text of the notebook
    links: of its Markdown
    cited: lines of that text, 1-based
    """
    first = 0
    if len(lines) > MAX_LINES and cited:
        at = next((n for n, cell in enumerate(cells) if cited[0] <= cell.end), 0)
        first = max(0, at - BEFORE)
    shown, room = 0, MAX_LINES
    for cell in cells[first:]:
        room -= len(_source(cell, lines))
        if room < 0 and shown:
            break
        shown += 1
    language = notebook_language(lines[0])
    views = (
        _view(cell, lines, cited, find, language, links) for cell in cells[first : first + shown]
    )
    return CellWindow(tuple(views), first, len(cells) - first - shown)


def _source(cell: Cell, lines: Sequence[str]) -> Sequence[str]:
    """The lines of a cell, without blank ones at the end."""
    last = cell.end
    while last > cell.first and not lines[last - 1].strip():
        last -= 1
    return lines[cell.first : last]


def _view(
    cell: Cell,
    lines: Sequence[str],
    cited: Sequence[int],
    find: Find,
    language: str,
    links: Links,
) -> CellView:
    source = _source(cell, lines)
    kind = cell.kind or language
    if cell.kind == MARKDOWN:
        is_cited = any(number in cited for number in range(cell.first + 1, cell.end + 1))
        inner = _number(cell.first + 1) + rendered("\n".join(source), links)
        prose = f'<div class="line prose{" is-cited" * is_cited}">{inner}</div>'
        return CellView(cell.number, _NAMES[kind], True, mark_safe(prose), cell.first + 1, cell.end)
    coloured = highlight_lines("\n".join(source), language=kind, marks=find.words)
    if find.name:
        coloured = [name_marked(line, find.name) for line in coloured]
    html = "".join(_code_lines(cell, coloured if source else [], cited))
    name = _NAMES.get(kind, kind)
    return CellView(cell.number, name, False, mark_safe(html), cell.first + 1, cell.end)


def _code_lines(cell: Cell, coloured: Sequence[SafeString], cited: Sequence[int]) -> Iterator[str]:
    for number, html in enumerate(coloured, cell.first + 1):
        state = " is-cited" * (number in cited)
        yield f'<span class="line{state}">{_number(number)}{html}\n</span>'


def _number(number: int) -> str:
    return f'<a class="ln" name="L{number}" href="#L{number}" tabindex="-1">{number}</a>'
