"""Cuts the output of a tool to a number of characters, at the end of a row."""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable

from apps.core.types import JSON

# Keys of the rows in an output; an output has one of them.
ROWS = ("results", "repos", "symbols")
# Between two rows: a comma and a space.
SEPARATOR = 2
TRUNCATED: JSON = {"truncated": True}


def capped(output: JSON, limit: int) -> JSON:
    """Return the output with its first rows, so that it has at most `limit` characters as JSON.
    `truncated` is true if rows were left out. An output whose other fields exceed the limit has no
    rows."""
    key = next((key for key in ROWS if key in output), None)
    if key is None or _size(output) <= limit:
        return output
    room = limit - _size(output | {key: [], "files": []} | TRUNCATED)
    if key == "symbols" and any(isinstance(symbol, dict) for symbol in output[key]):
        rows, _ = _first_symbols(output[key], room)
        return output | {key: rows} | TRUNCATED
    rows = []
    for row in output[key]:
        room -= _size(row) + SEPARATOR + _size(_files(output, [row]))
        if room < 0:
            break
        rows.append(row)
    files = {"files": _files(output, rows)} if "files" in output else {}
    return output | {key: rows} | files | TRUNCATED


def capped_form(output: JSON, form: Callable[[JSON], JSON], limit: int) -> JSON:
    """Return `form(output)`, made of the first rows so that it has at most `limit` characters.

    form: returns fewer characters for fewer rows; it may group them
    """
    whole = form(output)
    rows = output.get("results")
    if rows is None or _size(whole) <= limit:
        return capped(whole, limit)

    def first(count: int) -> JSON:
        return form(output | {"results": rows[:count]} | TRUNCATED)

    fitting = bisect_right(range(len(rows)), limit, key=lambda count: _size(first(count)))
    return first(max(0, fitting - 1))


def _files(output: JSON, rows: Iterable[JSON]) -> list[JSON]:
    """Return the summaries of the files of some rows."""
    if not output.get("files"):
        return []
    paths = {row.get("hostPath") for row in rows}
    return [file for file in output.get("files", []) if file["hostPath"] in paths]


def _first_symbols(symbols: list[JSON], room: int) -> tuple[list[JSON], int]:
    """Return the first symbols that fit, outer ones before those inside them, and the room left;
    below 0 if one did not fit."""
    chosen: list[JSON] = []
    for symbol in symbols:
        room -= _size({**symbol, "children": []}) + SEPARATOR
        if room < 0:
            break
        children, room = _first_symbols(symbol.get("children", []), room)
        chosen.append({**symbol, "children": children} if children else _childless(symbol))
        if room < 0:
            break
    return chosen, room


def _childless(symbol: JSON) -> JSON:
    return {key: value for key, value in symbol.items() if key != "children"}


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=str))
