"""The cells of notebooks: which one lines are in, and their lines in the file.

Inside, lines are those of a notebook's text (`apps.code.cells`). Most often they are lines of the
file too; of a packed notebook, whose lines of source share lines of the file, they are not.
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from apps.code.cells import Cell, cells_of
from apps.code.notebooks import is_notebook_path
from apps.core.errors import CodeinfoError
from apps.lookup.ingested import lines_of_file, live_file
from apps.retrieval.repositories import find_root

# Parts of an output that have rows.
ROWS = ("results", "definitions", "symbols", "rows")
ANSWER = "answer"  # a part that has parts: the answer by the shape of a question


def notebook_cells(repo: str, path: str) -> Sequence[Cell]:
    """The cells of a live file; none if it is no notebook or cannot be read."""
    if not is_notebook_path(path):
        return ()
    try:
        root = find_root(repo)
        return cells_of(lines_of_file(root, live_file(root, path)))
    except CodeinfoError:
        return ()


def cell_at(cells: Sequence[Cell], line: int) -> Cell | None:
    """The cell of a line of the text; of a line before all of them the first."""
    return (
        cells[max(0, bisect_right(cells, line - 1, key=attrgetter("mark")) - 1)] if cells else None
    )


def cell_label(cells: Sequence[Cell], start: int | None, end: int | None) -> str:
    """`cell 7, lines 3–9`, within the cell; "" for the lines of other files."""
    cell = cell_at(cells, start) if start else None
    if cell is None or start is None:
        return ""
    first = max(1, start - cell.first)
    last = max(first, min(end or start, cell.end) - cell.first)
    span = f"line {first}" if first == last else f"lines {first}–{last}"
    return f"cell {cell.number}, {span}"


def with_cells(output: dict[str, Any]) -> dict[str, Any]:
    """Add `cell`, and `cellLine`, the line within it, to the rows of an output that are lines of a
    notebook, and make their lines those of the file."""
    cells = cache(notebook_cells)
    changed: dict[str, Any] = {}
    for key in ROWS:
        rows = output.get(key)
        if not isinstance(rows, list):
            continue
        changed[key] = []
        for row in rows:
            place = {**output, **row}
            if _is_in_notebook(place):
                row = _with_cell(row, cells(place["repo"], place["relPath"]))
            changed[key].append(row)
    if isinstance(answer := output.get(ANSWER), dict):
        changed[ANSWER] = with_cells(answer)
    return output | changed


def _is_in_notebook(row: dict[str, Any]) -> bool:
    return bool(row.get("startLine")) and is_notebook_path(str(row.get("relPath", "")))


def _with_cell(row: dict[str, Any], cells: Sequence[Cell]) -> dict[str, Any]:
    cell = cell_at(cells, row["startLine"])
    if cell is None:
        return row
    row = row | {"cell": cell.number, "cellLine": max(1, row["startLine"] - cell.first)}
    if "children" in row:
        row["children"] = [_with_cell(child, cells) for child in row["children"]]
    last = cell_at(cells, row.get("endLine") or row["startLine"])
    if cell.in_file and last and last.in_file:
        row |= {"startLine": cell.in_file[0]}
        row |= {"endLine": last.in_file[1]} if "endLine" in row else {}
        # Lines around a match have no numbers of their own.
        around = [*row.pop("before", ()), row.get("chunk", ""), *row.pop("after", ())]
        row |= {"chunk": "\n".join(around)} if "chunk" in row else {}
    return row


def rows_of_cells(cells: Sequence[Cell], first: int, last: int | None) -> tuple[int, int | None]:
    """The lines of the text, 1-based, of the cells with these numbers; `last` None: to the end."""
    chosen = [cell for cell in cells if first <= cell.number <= (last or cells[-1].number)]
    if not chosen:
        return cells[-1].end + 1, None
    return chosen[0].mark + 1, None if last is None else chosen[-1].end


def lines_in_text(cells: Sequence[Cell], first: int, last: int | None) -> tuple[int, int | None]:
    """The lines of the text that are these lines of the file."""
    if not cells or cells[0].in_file is None:
        return first, last
    inside = [
        cell
        for cell in cells
        if cell.in_file and cell.in_file[1] >= first and (last is None or cell.in_file[0] <= last)
    ]
    return (inside[0].mark + 1, inside[-1].end) if inside else (cells[-1].end + 1, None)
