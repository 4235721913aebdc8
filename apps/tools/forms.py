"""What the compact and the quoted forms of several tools share.

The compact form is what MCP returns: about as many tokens as plain text. Lines are one text
(`78-83`), and the text of a passage is a list of lines, because each escaped line break costs a
token. References are grouped by file. Paths of the machine, models and ids are left out.

The quoted form is what the chat gives to a model: rows with citations, without host paths, ids and
summaries, which are useless to it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from apps.core.types import JSON

HEADED = "`12: text`, `12- text` for context, below `@symbol`, the definition that contains them."


def named(values: Mapping[str, Any], *names: str) -> JSON:
    """The fields with these names that say something."""
    return {name: values[name] for name in names if values.get(name)}


# --- compact --------------------------------------------------------------------------------------


def passage(row: JSON, *names: str) -> JSON:
    """Place and lines of a row, and the fields with these names."""
    lines = {} if row["startLine"] is None else {"lines": span(row)}
    return {
        "repo": row["repo"],
        "relPath": row["relPath"],
        **lines,
        **named(row, "cell", "cellLine", *names),
    }


def span(row: JSON) -> str:
    """`78-83`, or `12`."""
    start, end = row["startLine"], row["endLine"]
    return str(start) if start == end else f"{start}-{end}"


def text(row: JSON) -> JSON:
    """The passage as a list of lines."""
    return {"chunk": row["chunk"].split("\n")}


def by_file(
    rows: Iterable[JSON],
    group: Callable[[JSON], JSON],
    apart: Callable[[JSON], object],
) -> list[JSON]:
    """The lines of each file, those in succession with one `group` together.

    apart: rows of a file for which this differs do not stand together
    """
    files: dict[object, JSON] = {}
    for row in rows:
        key = row["repo"], row["relPath"], apart(row)
        place = {"repo": row["repo"], "relPath": row["relPath"], "references": []}
        groups: list[JSON] = files.setdefault(key, place)["references"]
        facts = group(row)
        if not groups or {**groups[-1], "lines": []} != {**facts, "lines": []}:
            groups.append(facts | {"lines": []})
        groups[-1]["lines"].append(f"{row['startLine']}: {row['chunk']}")
    return list(files.values())


def headed(
    rows: Iterable[JSON], name: str, *, head: Callable[[JSON], JSON] = lambda row: {}
) -> list[JSON]:
    """The numbered lines of each file, as the member `name`. Above the lines of a definition is `@`
    and its symbol, and in a notebook the cell.

    head: further fields of a file; rows for which they differ do not stand together
    """
    files: dict[object, JSON] = {}
    headings: dict[object, str] = {}
    for row in rows:
        more = head(row)
        key = row["repo"], row["relPath"], str(more)
        place = {"repo": row["repo"], "relPath": row["relPath"], **more, name: []}
        lines = files.setdefault(key, place)[name]
        ending = " (definition)" if row["kind"] == "definition" else ""
        cell = f" (cell {row['cell']})" if "cell" in row else ""
        heading = f"@{row.get('symbol') or ''}{ending}{cell}"
        if heading != headings.get(key, "@"):
            headings[key] = heading
            lines.append(heading)
        lines += numbered(row)
    return list(files.values())


def numbered(row: JSON) -> list[str]:
    """The lines of a row, `12: text`, with those around them, `12- text`."""
    start, end = row["startLine"], row["endLine"]
    before, after = row.get("before", ()), row.get("after", ())
    return [
        *(f"{number}- {line}" for number, line in enumerate(before, start - len(before))),
        # Lines of a packed notebook share lines of the file.
        *(
            f"{min(number, end)}: {line}"
            for number, line in enumerate(row["chunk"].split("\n"), start)
        ),
        *(f"{number}- {line}" for number, line in enumerate(after, end + 1)),
    ]


# --- quoted ---------------------------------------------------------------------------------------


def place(repo: str, path: str, start: int | None, end: int | None) -> str:
    """Return a citation, `repo/path:start-end`: lines 1-based, both inclusive."""
    return f"{repo}/{path}" if start is None else f"{repo}/{path}:{start}-{end}"


def cited(match: JSON, fields: JSON) -> JSON:
    """A row with its citation, some fields and its text."""
    lines = match.get("startLine"), match.get("endLine")
    citation = place(match.get("repo", ""), match.get("relPath", ""), *lines)
    return {
        "citation": citation,
        **named(match, "cell", "cellLine"),
        **fields,
        "chunk": match.get("chunk", ""),
    }


def quoted_symbols(payload: JSON) -> JSON:
    """Definitions, references, callers or imports, each with its citation."""
    fields = named(payload, "match", "libraries", "truncated", "notes", "nextCursor", "hint")
    names = ("kind", "symbol", "match", "callee", "depth", "target", "note")
    rows = [cited(match, named(match, *names)) for match in payload.get("results", [])]
    return {**fields, "results": rows}


def with_file(row: JSON) -> JSON:
    """The row with the path as a citation has it."""
    if "relPath" not in row:
        return row
    rest = {key: value for key, value in row.items() if key not in ("repo", "relPath")}
    return {"file": place(row["repo"], row["relPath"], None, None), **rest}
