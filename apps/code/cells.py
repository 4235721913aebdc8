"""The text of a notebook: its cells, each below a mark.

    jupyter: python            the language of its code
    # %% 1 [md]                cell 1: Markdown, `raw`, or the language of a cell in another one
    # %% 2 @7-9                cell 2: code; in the file it is on lines 7 to 9

Lines of the text are lines of the file, unless marks name those. What is before `# %%` is
invisible, and the text of cells has no such character. `notebooks` makes the text.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

# U+2063, the invisible separator.
SIGN = "\u2063"
_HEAD = re.compile(rf"{SIGN}jupyter: (\w+)(?: @(\d+))?")
_MARK = re.compile(rf"{SIGN}# %% (\d+)(?: \[(\w+)\])?(?: @(\d+)(?:-(\d+))?)?")
MARKDOWN, RAW = "md", "raw"
# What IPython and other kernels take from the language: `%time f()`, `!ls`, `?len`, `#!fsharp`.
_COMMAND = re.compile(r"[ \t]*(?:%{1,2}[A-Za-z_]|!|\?|#!)|[ \t]*[\w.]+\?{1,2}[ \t]*\Z")
_ASSIGNED = re.compile(r"[ \t]*[\w.,*][\w.,* \t]*=[ \t]*(?:!|%[A-Za-z_])")


class Cell(NamedTuple):
    """A cell of a notebook. Rows are 0-based, in the text."""

    number: int  # 1-based
    kind: str  # "": code in the language of the notebook, MARKDOWN, RAW, or a language
    mark: int  # row of its mark
    end: int  # the row after its last
    in_file: tuple[int, int] | None  # its lines in the file, 1-based, if rows do not tell

    @property
    def first(self) -> int:
        return self.mark + 1


def head(language: str, count: int = 0) -> str:
    """The first line of the text of a notebook. count: lines of the file, if the text has others"""
    return f"{SIGN}jupyter: {language}{f' @{count}' * bool(count)}"


def mark(number: int, kind: str = "", in_file: tuple[int, int] | None = None) -> str:
    """The line before the first one of a cell."""
    lines = f" @{in_file[0]}-{in_file[1]}" if in_file else ""
    return f"{SIGN}# %% {number}{f' [{kind}]' * bool(kind)}{lines}"


def notebook_language(text: str) -> str:
    """The language of the code in a notebook by its text; "" for the text of another file."""
    match = _HEAD.match(text)
    return match[1] if match else ""


def is_notebook(lines: Sequence[str]) -> bool:
    return bool(lines) and lines[0].startswith(SIGN) and bool(notebook_language(lines[0]))


def lines_in_file(lines: Sequence[str]) -> int:
    """The number of lines that the file of a text has."""
    match = _HEAD.match(lines[0]) if lines else None
    return int(match[2]) if match and match[2] else len(lines)


def cells_of(lines: Sequence[str]) -> list[Cell]:
    """The cells of a notebook; none of another file. Lines after a cell's last one are its own."""
    if not is_notebook(lines):
        return []
    marks = [
        (row, match)
        for row, line in enumerate(lines)
        if line.startswith(SIGN) and (match := _MARK.match(line))
    ]
    ends = [row for row, _ in marks[1:]] + [len(lines)]
    return [
        Cell(
            int(match[1]),
            match[2] or "",
            row,
            end,
            (int(match[3]), int(match[4] or match[3])) if match[3] else None,
        )
        for (row, match), end in zip(marks, ends, strict=False)  # there may be no marks
    ]


def code_lines(lines: Sequence[str], kind: str = "") -> list[str]:
    """The code of the cells of a kind: lines of as many bytes, those of other cells and commands of
    the kernel blank. A command in a block is an expression, as the block must not be empty."""
    code = list(map(blank, lines))
    for cell in cells_of(lines):
        if cell.kind == kind:
            code[cell.first : cell.end] = _without_commands(lines[cell.first : cell.end])
    return code


def _without_commands(lines: Sequence[str]) -> list[str]:
    code: list[str] = []
    continues = at_start = False
    is_cell_start = True
    for line in lines:
        command = _COMMAND.match(line) or _ASSIGNED.match(line)
        # Julia's modes begin a cell: `]add Flux`, `;ls`.
        at_start = is_cell_start and line.lstrip().startswith(("]", ";"))
        if continues or command or at_start:
            indent = len(line) - len(line.lstrip())
            spaces = blank(line)
            is_inside = command and not continues and 0 < indent < len(spaces)
            code.append(spaces[:indent] + "0" + spaces[indent + 1 :] if is_inside else spaces)
            continues = line.rstrip().endswith("\\")
        else:
            code.append(line)
        is_cell_start = is_cell_start and (code[-1] != line or not line.strip())
    return code


def blank(line: str) -> str:
    """Spaces, as many as a line has bytes."""
    return " " * len(line.encode())
