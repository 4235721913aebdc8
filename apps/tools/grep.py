"""Grep: lines that match a pattern."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from apps.core.types import JSON
from apps.core.values.json_schema import COUNT, TEXT, list_schema, object_schema, typed
from apps.lookup.texts.grep_page import grep
from apps.lookup.texts.grep_query import DEFAULT_LIMIT, MAX_CONTEXT, MAX_LIMIT, MODES, GrepQuery
from apps.lookup.texts.patterns import MAX_PATTERN
from apps.retrieval.scope import with_hint
from apps.tools import schemas
from apps.tools.errors import BAD_PATTERN, OF_PAGES, OF_TEXTS
from apps.tools.forms import HEADED, headed, named, with_file
from apps.tools.tool import CURSOR, FLAG, OFFSET, QUOTED, SCOPE, Tool, limit, log_call, schema, text

_TOTALS: JSON = {"files": COUNT, "lines": COUNT, "mode": TEXT, "generations": schemas.GENERATIONS}
_GREP = object_schema(
    {
        "results": list_schema(
            object_schema(
                schemas.PLACE,
                {
                    **schemas.MORE_PLACE,
                    **schemas.SPAN,
                    "kind": typed("string", "definition, match or file"),
                    "chunk": schemas.QUOTE,
                    "symbol": typed("string", "The definition that contains the line."),
                    "before": list_schema(TEXT),
                    "after": list_schema(TEXT),
                    "count": COUNT,
                },
            )
        )
    },
    schemas.TEXT_NOTES | _TOTALS,
)
_COMPACT = object_schema(
    {
        "results": list_schema(
            object_schema(
                {"repo": TEXT},
                {
                    "relPath": TEXT,
                    "matches": list_schema(TEXT) | {"description": HEADED},
                    "files": list_schema(TEXT),
                },
            )
        )
    },
    schemas.TEXT_NOTES | _TOTALS,
)


def _output(arguments: Mapping[str, Any]) -> JSON:
    query = GrepQuery.parse(arguments)
    output = with_hint(grep(query), query.repositories, query.filters)
    log_call("Grep", **query.as_log(), results=len(output["results"]))
    return output


def _compact(output: JSON) -> JSON:
    """Lines by file and definition; or files by repository."""
    notes = named(output, "generations", "lines", "files", "degraded", "slow", "stopped")
    notes |= named(output, "truncated", "nextCursor", "hint")
    if output.get("mode") != "content":
        counts = [(row, f": {row['count']}" if "count" in row else "") for row in output["results"]]
        return {
            "results": [
                {"repo": repo, "files": [f"{row['relPath']}{count}" for row, count in rows]}
                for repo, rows in groupby(counts, key=lambda pair: pair[0]["repo"])
            ]
        } | notes
    return {"results": headed(output["results"], "matches")} | notes


def _quoted(payload: JSON) -> JSON:
    """The lines by file, or files by repository."""
    compact = _compact(payload)
    return compact | {"results": [with_file(row) for row in compact["results"]]}


GREP = Tool(
    name="Grep",
    description=(
        "Find lines that match a regular expression (RE2) or fixed text in the ingested files, "
        "each with path, line number and the definition that contains it; definitions of an "
        "identifier in the pattern first. Use it for exact text: messages, options, calls. "
        "Example: 'raise \\w+Timeout', path 'src/'. Not for a question in words: use VectorSearch. "
        + QUOTED
    ),
    parameters=schema(
        {
            "pattern": text(MAX_PATTERN),
            "fixed": FLAG | {"description": "Plain text, no regular expression."},
            "ignore_case": FLAG,
            "word": FLAG | {"description": "Whole words only."},
            "multiline": FLAG | {"description": "A match may span lines."},
            "mode": {"type": "string", "enum": list(MODES), "default": MODES[0]},
            "context": {
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_CONTEXT,
                "description": "Lines around each match.",
            },
            **SCOPE,
            "limit": limit(DEFAULT_LIMIT, MAX_LIMIT),
            "cursor": CURSOR,
            "offset": OFFSET,
        },
        "pattern",
    ),
    function=_output,
    title="Find exact text",
    need="exact text, or a regular expression",
    output_schema=_GREP,
    compact=_compact,
    compact_schema=_COMPACT,
    quoted=_quoted,
    route="grep",
    errors=(*OF_TEXTS, *OF_PAGES, BAD_PATTERN),
    progress="Looking for the text",
    subject="pattern",
    empty_hint=(
        "No line matches. Try a shorter part with ignore_case, fixed if it is no regular "
        "expression, or look into all repositories without filters."
    ),
)
