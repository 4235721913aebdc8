"""Overview: what a repository is, in few lines."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from apps.core.types import JSON
from apps.core.values.json_schema import COUNT, TEXT, list_schema, object_schema, or_null, typed
from apps.lookup.overview.as_text import MAX_NAME, cut, language_text, module_text
from apps.lookup.overview.overview import OverviewQuery, overview_of
from apps.lookup.overview.sizes import Module
from apps.lookup.relations.types import Relation
from apps.retrieval.repositories import repo_id
from apps.tools import schemas, shaped
from apps.tools.context.tokens import estimate
from apps.tools.errors import OF_SYMBOLS
from apps.tools.forms import named
from apps.tools.tool import QUOTED, REPOSITORY_ID, Tool, log_call, schema

# Tokens of the compact form, without notes that the answer is stale; characters of a line, of the
# sentence of a README, and of a path. Rows with a longer path are left out.
MAX_TOKENS, MAX_LINE, MAX_SENTENCE, MAX_PATH = 800, 80, 200, 150
_NOTES: JSON = {"notes": schemas.LEFT_OUT, "degraded": TEXT, "truncated": schemas.TRUNCATED}
_LANGUAGE = object_schema(
    {
        "name": TEXT,
        "files": COUNT,
        "lines": or_null(COUNT),
        "share": typed("number", "Of the bytes of all code, from 0 to 1."),
    }
)
_MODULE = object_schema(
    {"path": TEXT, "files": COUNT, "language": TEXT, "parts": list_schema(TEXT), "purpose": TEXT}
)
_OVERVIEW = object_schema(
    {
        "repo": TEXT,
        "files": COUNT,
        "languages": list_schema(_LANGUAGE),
        "modules": list_schema(_MODULE),
        "results": list_schema(shaped.ROW),
    },
    _NOTES,
)
_COMPACT = object_schema(
    {
        "repo": TEXT,
        "files": COUNT,
        "languages": list_schema(TEXT),
        "modules": list_schema(TEXT),
        "results": list_schema(TEXT)
        | {"description": "kind repo/path:12-12 symbol -> what is started | line: quoted data."},
    },
    _NOTES,
)


def _output(arguments: Mapping[str, Any]) -> JSON:
    query = OverviewQuery.parse(arguments)
    found = overview_of(query)
    log_call("Overview", repository=query.repository, results=len(found.rows))
    notes = {"notes": found.note, "degraded": found.degraded}
    output: JSON = {
        "repo": repo_id(found.root),
        "files": found.files,
        "languages": [asdict(language) for language in found.languages],
        "modules": list(map(_module, found.modules)),
        "results": list(map(_row, found.rows)),
        **named(notes, *notes),
    }
    return _fitting(output)


def _row(row: Relation) -> JSON:
    most = MAX_SENTENCE if row.role == "readme" else MAX_LINE
    return row.as_wire() | {"chunk": cut(row.text, most)}


def _module(module: Module) -> JSON:
    return asdict(module) | {"parts": [cut(part, MAX_NAME) for part in module.parts]}


def _fitting(output: JSON) -> JSON:
    """The output with as many rows of each kind, and modules, as MAX_TOKENS allow; without those
    whose path is too long."""
    parts: dict[str, list[JSON]] = {"modules": []}
    for row in output["results"]:
        if len(row["relPath"]) <= MAX_PATH and len(row.get("symbol", "")) <= MAX_PATH:
            parts.setdefault(row["kind"], []).append(row)
    parts["modules"] += [one for one in output["modules"] if len(one["path"]) <= MAX_PATH]
    all_rows = len(output["results"]) + len(output["modules"])
    while True:
        modules, *lists = parts.values()
        rows = [row for rows in lists for row in rows]
        fitting = output | {"modules": modules, "results": rows}
        fitting |= {"truncated": True} if len(rows) + len(modules) < all_rows else {}
        if not (rows or modules) or estimate(_text(fitting)) <= MAX_TOKENS:
            return fitting
        max(parts.values(), key=_size).pop()


def _size(rows: Sequence[JSON]) -> int:
    return sum(len(str(list(row.values()))) for row in rows)


def _text(output: JSON) -> str:
    return json.dumps(_compact(output), ensure_ascii=False, separators=(",", ":"))


def _compact(output: JSON) -> JSON:
    """A text for each row."""
    return {
        **named(output, "repo", "files"),
        "languages": list(map(language_text, output["languages"])),
        "modules": list(map(module_text, output["modules"])),
        "results": list(map(shaped.line_of, output["results"])),
        **named(output, *_NOTES),
    }


OVERVIEW = Tool(
    name="Overview",
    description=(
        "Start here in a repository that you do not know: its purpose, languages, modules, entry "
        "points, most imported files, and the commands that build and test it, with lines. "
        + QUOTED
    ),
    parameters=schema({"repository": REPOSITORY_ID}, "repository"),
    function=_output,
    title="Describe a repository",
    need="what a repository is, how it is built and tested, where to start reading",
    output_schema=_OVERVIEW,
    compact=_compact,
    compact_schema=_COMPACT,
    quoted=_compact,
    route="overview",
    errors=OF_SYMBOLS,
    progress="Looking over",
    subject="repository",
    empty_hint="No manifest, entry point or import was found. ListFiles shows its files.",
    result_words=("line", "lines"),
)
