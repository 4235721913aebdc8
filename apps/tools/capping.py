"""Cuts the output of a tool to a number of characters, at the end of a row."""

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence

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
# The full form beside a compact one, which does not count, and its name in `_meta` of MCP. It has
# fewer characters than what the chat stores of a result has bytes (`agents.limits`).
FULL, FULL_META_KEY = "_full", "codeinfo/full"
MAX_FULL = 200_000
TRUNCATED: JSON = {"truncated": True}


def capped(output: JSON, limit: int, form: Callable[[JSON], JSON] = dict) -> JSON:
    """Return `form(output)`, made of the first rows so that it has at most `limit` characters as
    JSON. `truncated` is true if rows were left out. An output whose other fields exceed the limit
    has no rows.

    form: returns fewer characters for fewer rows; it may group them
    """
    whole = form(output)
    key = next((key for key in ROWS if key in output), "")
    if not key or _size(whole) <= limit:
        return whole

    def first(count: int) -> JSON:
        return form(_with_first(output, key, count))

    counts = range(1, _count(output[key]))
    fitting = bisect_right(counts, limit, key=lambda count: _size(first(count)))
    if fitting or not output[key] or PAGE not in output:
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


def _with_first(output: JSON, key: str, count: int) -> JSON:
    """Return the output with its first rows, and the summaries of their files."""
    rows, _ = _first(output[key], count)
    cut = output | {key: rows} | TRUNCATED
    if isinstance(files := output.get("files"), list):
        paths = {row["hostPath"] for row in rows}
        cut["files"] = [file for file in files if file["hostPath"] in paths]
    return cut


def _first(rows: Sequence[JSON], count: int) -> tuple[list[JSON], int]:
    """Return the first rows, outer symbols before those inside them, and how many are lacking."""
    chosen: list[JSON] = []
    for row in rows:
        if count == 0:
            break
        children, count = _first(row.get("children", ()), count - 1)
        inside = {"children": children} if children else {}
        chosen.append({name: row[name] for name in row if name != "children"} | inside)
    return chosen, count


def _count(rows: Sequence[JSON]) -> int:
    return sum(1 + _count(row.get("children", ())) for row in rows)


def _size(value: JSON) -> int:
    counted = {name: member for name, member in value.items() if name != FULL}
    return len(json.dumps(counted, ensure_ascii=False, default=str))
