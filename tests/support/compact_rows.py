"""Reads the compact form of outputs, as a model does: the rows of the full form behind it."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from apps.core.types import JSON

_LINE = re.compile(r"(\d+)([:-]) ?(.*)", re.DOTALL)
_HEADING = re.compile(r"@(.*?)( \(definition\))?(?: \(cell \d+\))?", re.DOTALL)


def rows_of(output: JSON) -> list[JSON]:
    """The rows of an output in either form, with what both have."""
    if "text" in output:
        return list(_ranges(output))
    rows: list[JSON] = output.get("repos") or [
        row for item in output["results"] for row in _rows(item)
    ]
    return rows


def _rows(item: JSON) -> Iterator[JSON]:
    """The rows of one compact row; a row of the full form, as it is."""
    place = {key: item[key] for key in ("repo", "relPath") if key in item}
    match item:
        case {"references": references}:
            yield from _references(references, place)
        case {"matches": lines}:
            yield from _below(lines, place)
        case {"files": list(files)}:
            for file in files:
                path, counted, count = file.rpartition(": ")
                number = {"count": int(count)} if counted else {}
                yield {**place, "relPath": path or file, "kind": "file", **number}
        case {"entries": entries}:
            for entry in entries:
                yield {**place, "relPath": entry.rpartition(": ")[0], "kind": "file"}
        case {"lines": lines}:
            start, _, end = lines.partition("-")
            span = {"startLine": int(start), "endLine": int(end or start)}
            yield {**item, **span, "chunk": "\n".join(item["chunk"])}
        case _:
            yield item


def _references(groups: Any, place: JSON) -> Iterator[JSON]:
    """The rows of FindReferences by file, or those of FindCallers and FindImports by group."""
    if isinstance(groups, dict):
        for path, lines in groups.items():
            yield from _below(lines, place | {"relPath": path})
        return
    for group in groups:
        more = {key: value for key, value in group.items() if key != "lines"}
        yield from (row | more for row in _below(group["lines"], place))


def _below(lines: Iterable[str], place: JSON) -> Iterator[JSON]:
    """The rows of numbered lines below headings, without those around them."""
    symbol = ""
    for line in lines:
        if heading := _HEADING.fullmatch(line):
            symbol = heading[1]
        elif (match := _LINE.fullmatch(line)) and match[2] == ":":
            span = {"startLine": int(match[1]), "endLine": int(match[1])}
            yield {**place, **span, "symbol": symbol, "chunk": match[3]}


def _ranges(output: JSON) -> Iterator[JSON]:
    """The rows of ReadFile: one for each range of lines without a gap."""
    lines: list[Any] = [match for line in output["text"] if (match := _LINE.fullmatch(line))]
    for _, group in groupby(enumerate(lines), key=lambda pair: int(pair[1][1]) - pair[0]):
        part = [line for _, line in group]
        span = {"startLine": int(part[0][1]), "endLine": int(part[-1][1])}
        place = {"repo": output["repo"], "relPath": output["relPath"]}
        yield {**place, **span, "chunk": "\n".join(line[3] for line in part)}
