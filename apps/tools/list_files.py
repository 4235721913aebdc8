"""ListFiles: which files there are, and which were left out."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from apps.core.types import JSON
from apps.core.values.json_schema import COUNT, TEXT, list_schema, object_schema
from apps.lookup.texts.listing import (
    DEFAULT_DEPTH,
    DEFAULT_LIMIT,
    MAX_DEPTH,
    MAX_LIMIT,
    ListQuery,
    list_files,
)
from apps.retrieval.scope import with_hint
from apps.tools import schemas
from apps.tools.errors import OF_PAGES, OF_TEXTS
from apps.tools.forms import named
from apps.tools.tool import CURSOR, FLAG, OFFSET, SCOPE, Tool, limit, log_call, schema

_UNITS = ("B", "KB", "MB", "GB", "TB")
_NOTES: JSON = schemas.TEXT_NOTES | {"generations": schemas.GENERATIONS}
_LIST = object_schema(
    {
        "results": list_schema(
            object_schema(
                schemas.FILE | {"size": COUNT, "kind": TEXT},
                {"language": TEXT, "files": COUNT, "languages": list_schema(TEXT), "reason": TEXT},
            )
        )
    },
    _NOTES,
)
_COMPACT = object_schema(
    {"results": list_schema(object_schema({"repo": TEXT, "entries": list_schema(TEXT)}))}, _NOTES
)


def _output(arguments: Mapping[str, Any]) -> JSON:
    query = ListQuery.parse(arguments)
    output = with_hint(list_files(query), query.repositories, query.filters)
    scope = ", ".join(query.repositories) or "all"
    log_call("ListFiles", repository=scope, results=len(output["results"]))
    return output


def _compact(output: JSON) -> JSON:
    """A line for each entry, by repository."""
    return {
        "results": [
            {"repo": repo, "entries": [f"{row['relPath']}: {described(row)}" for row in rows]}
            for repo, rows in groupby(output["results"], key=lambda row: row["repo"])
        ]
    } | named(output, "generations", "truncated", "nextCursor", "hint")


def described(row: Mapping[str, Any]) -> str:
    """`3.1 KB python`, `120 files, 1.2 MB, c, cpp`, or `3.1 KB, binary` of a row of ListFiles."""
    size = _size(row["size"])
    if "reason" in row:
        return f"{size}, {row['reason']}"
    if "files" in row:
        files = f"{row['files']} file{'' if row['files'] == 1 else 's'}"
        return ", ".join([files, size, *row["languages"]])
    return f"{size} {row.get('language', '')}".strip()


def _size(size: float) -> str:
    """`3.1 KB`."""
    unit = 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 or size >= 10 else f"{size:.1f} {_UNITS[unit]}"


LIST_FILES = Tool(
    name="ListFiles",
    description=(
        "List ingested files with size and language: those that match a glob (path "
        "'tests/*_api.py'), or the tree below a folder to a depth."
    ),
    parameters=schema(
        {
            **SCOPE,
            "depth": limit(DEFAULT_DEPTH, MAX_DEPTH),
            "skipped": FLAG | {"description": "Files left out, and why."},
            "limit": limit(DEFAULT_LIMIT, MAX_LIMIT),
            "cursor": CURSOR,
            "offset": OFFSET,
        }
    ),
    function=_output,
    title="List the files",
    need="which files there are, and which were left out",
    output_schema=_LIST,
    compact=_compact,
    compact_schema=_COMPACT,
    quoted=_compact,
    route="list-files",
    errors=(*OF_TEXTS, *OF_PAGES),
    progress="Listing the files",
    subject="path",
    empty_hint="No file is there. Leave out `path` and `language` to see which there are.",
    result_words=("entry", "entries"),
)
