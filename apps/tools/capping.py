"""Cuts the output of a tool to a number of characters, at the end of a row."""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable

from apps.core.types import JSON
from apps.retrieval.paging import PAGE
from apps.retrieval.paging import ROWS as PAGED

# Keys of the rows in an output; an output has one of them.
ROWS = (*PAGED, "symbols")
# What is cut of a row that is too long: its texts, and what is around them; and lists beside it.
TEXTS = ("chunk", "signature", "description", "lastError")
AROUND = ("before", "after", "columns", "names")
BESIDE = ("definitions", "libraries")
SHORTENED = "The row was shortened: it is longer than an answer may be."
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
    key = next((key for key in PAGED if key in output), "")
    if not key or _size(whole) <= limit:
        return capped(whole, limit)
    rows = output[key]

    def first(count: int) -> JSON:
        return form(output | {key: rows[:count]} | TRUNCATED)

    counts = range(1, len(rows))
    fitting = bisect_right(counts, limit, key=lambda count: _size(first(count)))
    if fitting or not rows or PAGE not in output:
        return first(fitting)
    row = _without_hint(first(1))
    return row if _size(row) <= limit else _with_short_row(output, key, form, limit)


def _with_short_row(output: JSON, key: str, form: Callable[[JSON], JSON], limit: int) -> JSON:
    """Return the form of the first row alone, with its texts cut so that it fits: a page without
    rows would lead nowhere. A row whose place is too long in itself exceeds the limit."""
    row = output[key][0] | {name: [] for name in AROUND if name in output[key][0]}
    lists: JSON = {name: [] for name in BESIDE if name in output}
    hint = " ".join(filter(None, [output.get("hint"), SHORTENED]))
    texts = {name: row[name] for name in TEXTS if row.get(name)}

    def short(length: int) -> JSON:
        cut = {name: _cut(text, length) for name, text in texts.items()}
        return form(output | lists | {key: [row | cut], "hint": hint} | TRUNCATED)

    lengths = range(max(map(len, texts.values()), default=0))
    if fitting := bisect_right(lengths, limit, key=lambda length: _size(short(length))):
        return short(fitting - 1)
    fitting = bisect_right(lengths, limit, key=lambda length: _size(_without_hint(short(length))))
    return _without_hint(short(max(0, fitting - 1)))


def _without_hint(output: JSON) -> JSON:
    return {key: value for key, value in output.items() if key != "hint"}


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"


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
