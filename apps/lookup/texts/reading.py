"""ReadFile: numbered lines of an ingested file."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.code.cells import Cell, cells_of, lines_in_file
from apps.core.config import config
from apps.index.models import Root, SourceFile
from apps.index.root_directory import RootDirectory
from apps.index.types import Area
from apps.lookup.cells import cell_at, lines_in_text, rows_of_cells
from apps.lookup.ingested import known_outline, lines_of_file, live_file
from apps.lookup.marking import marked
from apps.lookup.symbols.outline import nested
from apps.lookup.symbols.types import OutlineQuery, Place, flattened
from apps.retrieval.query import invalid
from apps.retrieval.repositories import find_root, required_model

MAX_RANGES = 20
MAX_RANGES_TEXT = 400  # characters
# A file with more lines is shown with its outline, and its first lines, if no range is given.
LARGE = 400
FIRST_LINES = 60
MAX_LINE = 2_000  # characters
# Characters that notes take at most, and the other members of a row.
NOTES, ROW = 400, 80
OUTLINE_PART = 0.4  # of the text that fits
NUMBER = 8  # characters that a line's number, quotes and comma take
_RANGE = re.compile(r"(\d{1,7})(?:[-–:](\d{0,7}))?")
_CELLS = re.compile(r"\A[ \t]{0,9}cells?(?=[ \d])", re.IGNORECASE)
EXPECTED = "lines must be ranges such as '10-40', '12' or '90-', several separated by commas"


@dataclass(frozen=True)
class ReadQuery:
    """A file, and which of its lines."""

    repository: str
    path: str
    ranges: tuple[tuple[int, int | None], ...] = ()  # 1-based, both included; None: to the end
    are_cells: bool = False  # `ranges` are of cells of a notebook
    areas: tuple[Area, ...] = ()  # the file must be in one of them

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "ReadQuery":
        """Check `{repository, path, lines?}`. `lines` is "10-40, 80-90", or a list of ranges;
        "cells 7-9" of a notebook.
        Unknown keys are ignored. Raises InvalidInput with all problems."""
        file = OutlineQuery.parse(data)
        lines = data.get("lines")
        cells = _CELLS.match(lines) if isinstance(lines, str) else None
        ranges = ranges_of(_CELLS.sub("", lines, 1) if isinstance(lines, str) else lines)
        return cls(file.repository, file.path, ranges, bool(cells), file.areas)


@marked
def read_lines(query: ReadQuery) -> dict[str, Any]:
    """The output of ReadFile: a row for each range, cut to the common cap.

    Always the ingested text, so that its line numbers are those of the other tools; `changed` says
    if the file on disk is another one by its stamp. Raises Conflict INGEST_REQUIRED, NotFound
    REPO_NOT_FOUND or FILE_NOT_FOUND, Unavailable TEXT_LOST.
    """
    required_model()
    root = find_root(query.repository)
    file = live_file(root, query.path, query.areas)
    lines = lines_of_file(root, file)
    cells, count = cells_of(lines), lines_in_file(lines)
    place = Place(root, file.path, file.language).as_wire()
    room = config().tool_max_chars - 2 * _size(place) - NOTES
    output = {
        **place,
        "generation": root.generation,
        "totalLines": count,
        "truncated": False,
        "results": [],
    }
    if changed := changed_note(root, file):
        output["changed"] = changed
    ranges = _in_text(query, cells)
    if not ranges and len(lines) > LARGE:
        output["outline"] = outline = _outline(root, file, cells, int(room * OUTLINE_PART))
        room -= _size(outline)
        ranges = ((1, FIRST_LINES),)
        output["hint"] = f"{count:,} lines: read those you need with lines, such as '90-140'."
    room -= (len(ranges) - 1) * (_size(place) + ROW) if ranges else 0
    rows, next_line = _rows(lines, ranges or ((1, None),), room)
    output["results"] = [place | row for row in rows]
    if len(rows) < len(ranges) and not next_line:
        output["hint"] = f"The file has {count:,} line{'s' * (count != 1)}."
    if next_line:
        cell = cell_at(cells, next_line)
        more = f"cell {cell.number}-" if cell and cell.in_file else f"{next_line}-"
        output |= {"truncated": True, "hint": f"There is more: continue with lines {more}."}
    return output


def changed_note(root: Root, file: SourceFile) -> str:
    """How the file on disk differs from the ingested one by its stamp; "" if it does not, or the
    disk is not there."""
    try:
        with RootDirectory(Path(root.path)) as directory:
            status = directory.stat(file.path)
    except (FileNotFoundError, NotADirectoryError):
        return "The file is gone from the disk: this is the text that was ingested."
    except OSError:
        return ""
    if (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns):
        return ""
    return (
        "The file on disk has changed since: this is the text that was ingested. "
        "Ingest the repository again to read the new one."
    )


def _in_text(query: ReadQuery, cells: Sequence[Cell]) -> tuple[tuple[int, int | None], ...]:
    """The lines of the text that a query asks for."""
    if query.are_cells:
        if not cells:
            raise invalid("Only a notebook has cells")
        return tuple(rows_of_cells(cells, *span) for span in query.ranges)
    return tuple(lines_in_text(cells, *span) for span in query.ranges)


def ranges_of(value: Any) -> tuple[tuple[int, int | None], ...]:
    """Ranges in text, merged where they overlap."""
    if value is None or value in ("", []):
        return ()
    if len(str(value)) > MAX_RANGES_TEXT:
        raise invalid(f"lines must have at most {MAX_RANGES_TEXT} characters")
    parts = value if isinstance(value, list) else str(value).split(",")
    if len(parts) > MAX_RANGES:
        raise invalid(f"lines must have at most {MAX_RANGES} ranges")
    ranges: list[tuple[int, int | None]] = []
    for part in sorted(map(_range, parts), key=lambda span: span[0]):
        start, end = part
        if ranges and (ranges[-1][1] is None or start <= ranges[-1][1] + 1):
            last = ranges[-1][1]
            ranges[-1] = ranges[-1][0], None if last is None or end is None else max(last, end)
        else:
            ranges.append(part)
    return tuple(ranges)


def _range(part: Any) -> tuple[int, int | None]:
    match = _RANGE.fullmatch(str(part).replace(" ", ""))
    if match is None or isinstance(part, bool):
        raise invalid(EXPECTED)
    start = int(match[1])
    end = start if match[2] is None else int(match[2]) if match[2] else None
    if start < 1 or (end is not None and end < start):
        raise invalid(EXPECTED)
    return start, end


def _rows(
    lines: Sequence[str], ranges: Sequence[tuple[int, int | None]], room: int
) -> tuple[list[dict[str, Any]], int]:
    """A row for each range with at most `room` characters, and the first line left out; 0 for
    none."""
    rows: list[dict[str, Any]] = []
    for start, end in ranges:
        last = min(len(lines), end or len(lines))
        texts: list[str] = []
        for number in range(start, last + 1):
            text = lines[number - 1]
            if len(text) > MAX_LINE:
                text = f"{text[:MAX_LINE]}… ({len(text):,} characters)"
            room -= _size(text) + NUMBER
            if room < 0:
                if texts:
                    rows.append(_row(start, texts))
                return rows, number
            texts.append(text)
        if texts:
            rows.append(_row(start, texts))
    return rows, 0


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _row(start: int, texts: Sequence[str]) -> dict[str, Any]:
    end = start + len(texts) - 1
    return {"startLine": start, "endLine": end, "kind": "lines", "chunk": "\n".join(texts)}


def _outline(root: Root, file: SourceFile, cells: Sequence[Cell], room: int) -> list[str]:
    """The definitions of the file, a line each, indented; the outermost if `room` is small."""
    flat: list[tuple[int, str]] = []
    for depth, item in flattened(nested(known_outline(root, file.document))):
        span = str(item.start_line)
        cell = cell_at(cells, item.start_line)
        if cell and cell.in_file:
            span = f"cell {cell.number}"
        elif item.end_line != item.start_line:
            span += f"-{item.end_line}"
        flat.append((depth, f"{'  ' * depth}{span} {item.kind} {item.signature or item.name}"))
    depth = max((level for level, _ in flat), default=0)
    while depth and sum(len(text) for level, text in flat if level <= depth) > room:
        depth -= 1
    chosen = [text for level, text in flat if level <= depth]
    while sum(map(len, chosen)) > room:
        chosen = chosen[: len(chosen) // 2]
    return chosen
