"""The compact form of the outputs of Grep, ReadFile and ListFiles, and its expansion.

A path stands once for its lines, which are `12: text`, or `12- text` for context, below `@` and the
symbol that contains them.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from apps.core.types import JSON

LINE = re.compile(r"(\d{1,9})([:-]) ?(.*)", re.DOTALL)
COUNTED = re.compile(r"(.+): (\d+)", re.DOTALL)
ENTRY = re.compile(r"(.+?): (.*)", re.DOTALL)
# Above the lines of a definition is `@` and its symbol.
NO_SYMBOL, DEFINITION = "@", " (definition)"
UNITS = ("B", "KB", "MB", "GB", "TB")


def compact_grep(output: JSON) -> JSON:
    """The compact output of Grep: lines by file and definition; or files by repository."""
    notes = _named(output, "generations", "lines", "files", "degraded", "slow", "stopped")
    notes |= _named(output, "truncated", "nextCursor", "hint")
    if output.get("mode") != "content":
        counts = [(row, f": {row['count']}" if "count" in row else "") for row in output["results"]]
        return {
            "results": [
                {"repo": repo, "files": [f"{row['relPath']}{count}" for row, count in rows]}
                for repo, rows in groupby(counts, key=lambda pair: pair[0]["repo"])
            ]
        } | notes
    files: dict[tuple[str, str], JSON] = {}
    headings: dict[tuple[str, str], str] = {}
    for row in output["results"]:
        key = row["repo"], row["relPath"]
        place = {"repo": row["repo"], "relPath": row["relPath"], "matches": []}
        lines = files.setdefault(key, place)["matches"]
        heading = _heading(row)
        if heading != headings.get(key, NO_SYMBOL):
            headings[key] = heading
            lines.append(heading)
        lines += _numbered(row)
    return {"results": list(files.values())} | notes


def _heading(row: JSON) -> str:
    return f"@{row.get('symbol', '')}{DEFINITION if row['kind'] == 'definition' else ''}"


def compact_read(output: JSON) -> JSON:
    """The compact output of ReadFile: all numbered lines in one list."""
    text = [line for row in output["results"] for line in _numbered(row)]
    names = ("generation", "totalLines", "changed", "outline")
    place = _named(output, "repo", "relPath", *names)
    return place | {"text": text} | _named(output, "truncated", "hint")


def compact_list(output: JSON) -> JSON:
    """The compact output of ListFiles: a line for each entry, by repository."""
    return {
        "results": [
            {"repo": repo, "entries": [f"{row['relPath']}: {described(row)}" for row in rows]}
            for repo, rows in groupby(output["results"], key=lambda row: row["repo"])
        ]
    } | _named(output, "generations", "truncated", "nextCursor", "hint")


def described(row: Mapping[str, Any]) -> str:
    """`3.1 KB python`, `120 files, 1.2 MB, c, cpp`, or `3.1 KB, binary` of a row of ListFiles."""
    size = _size(row["size"])
    if "reason" in row:
        return f"{size}, {row['reason']}"
    if "files" in row:
        files = f"{row['files']} file{'' if row['files'] == 1 else 's'}"
        return ", ".join([files, size, *row["languages"]])
    return f"{size} {row.get('language', '')}".strip()


def expanded_rows(row: Mapping[str, Any], place: Mapping[str, Any]) -> Iterator[JSON]:
    """The rows of the full form that a compact row of these tools stands for; `place` has the facts
    about its file. Context is lost."""
    facts = {"symbol": "", "kind": "match"}
    for line in _strings(row.get("matches")):
        if line.startswith("@"):
            kind = "definition" if line.endswith(DEFINITION) else "match"
            facts = {"symbol": line[1:].removesuffix(DEFINITION), "kind": kind}
        for number, mark, text in _parsed([line]):
            if mark == ":":
                yield {**place, **facts, "startLine": number, "endLine": number, "chunk": text}
    repo = row.get("repo")
    for text in _strings(row.get("files")):
        counted = COUNTED.fullmatch(text)
        path, count = (counted[1], {"count": int(counted[2][:9])}) if counted else (text, {})
        yield {"repo": repo, "relPath": path, "kind": "file", **count}
    for text in _strings(row.get("entries")):
        if entry := ENTRY.fullmatch(text):
            yield {"repo": repo, "relPath": entry[1], "kind": "file", "chunk": entry[2]}


def expanded_text(output: Mapping[str, Any], place: Mapping[str, Any]) -> Iterator[JSON]:
    """The rows of ReadFile: one for each range of lines without a gap."""
    lines = list(_parsed(output.get("text")))
    for _, group in groupby(enumerate(lines), key=lambda pair: pair[1][0] - pair[0]):
        part = [line for _, line in group]
        text = "\n".join(each for _, _, each in part)
        span = {"startLine": part[0][0], "endLine": part[-1][0]}
        yield {**place, **span, "kind": "lines", "chunk": text}


def _numbered(row: JSON) -> list[str]:
    """The lines of a row, with those around them."""
    start, end = row["startLine"], row["endLine"]
    before, after = row.get("before", ()), row.get("after", ())
    return [
        *(f"{number}- {text}" for number, text in enumerate(before, start - len(before))),
        *(f"{number}: {text}" for number, text in enumerate(row["chunk"].split("\n"), start)),
        *(f"{number}- {text}" for number, text in enumerate(after, end + 1)),
    ]


def _parsed(lines: Any) -> Iterator[tuple[int, str, str]]:
    for line in _strings(lines):
        if found := LINE.fullmatch(line):
            yield int(found[1]), found[2], found[3]


def _strings(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _named(output: Mapping[str, Any], *names: str) -> JSON:
    return {name: output[name] for name in names if output.get(name)}


def _size(size: float) -> str:
    """`3.1 KB`."""
    unit = 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {UNITS[unit]}" if unit == 0 or size >= 10 else f"{size:.1f} {UNITS[unit]}"
