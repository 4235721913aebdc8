"""CheckCitations: which citations of a text still hold."""

from collections.abc import Mapping
from typing import Any

from apps.core.types import JSON
from apps.core.values.json_schema import TEXT, list_schema, object_schema, typed
from apps.lookup.citations.quotes import MAX_TEXT
from apps.lookup.citations.text import CitationsQuery, check_text
from apps.lookup.git.refs import MAX_NAME
from apps.tools import schemas
from apps.tools.errors import OF_SYMBOLS
from apps.tools.forms import named
from apps.tools.tool import REPOSITORY, Tool, log_call, schema, text

_NOTES: JSON = {
    "summary": typed("string", "`5 citations, 4 still hold`."),
    "degraded": TEXT,
    "truncated": schemas.TRUNCATED,
    "hint": TEXT,
}
_VERDICT = typed(
    "string", "ok, moved, changed, gone, unknown, not_found, exists or out_of_range (docs/mcp.md)."
)
_ROW = object_schema(
    {"cited": typed("string", "`path:10-20`, as in the text."), "verdict": _VERDICT},
    {
        **schemas.PLACE,
        **schemas.MORE_PLACE,
        **schemas.SPAN,
    },
)
_LINES = list_schema(TEXT) | {"description": "`moved a.py:10-20 -> repo/b.py:12-22`"}


def _output(arguments: Mapping[str, Any]) -> JSON:
    query = CitationsQuery.parse(arguments)
    output = check_text(query)
    log_call("CheckCitations", results=len(output["results"]))
    return output


def _compact(output: JSON) -> JSON:
    """A text for each citation."""
    return {**named(output, "summary"), "results": list(map(_text, output["results"]))} | named(
        output, "degraded", "truncated", "hint"
    )


def _text(row: JSON) -> str:
    moved = row["verdict"] == "moved"
    span = f"{row['repo']}/{row['relPath']}:{row['startLine']}-{row['endLine']}" if moved else ""
    return f"{row['verdict']} {row['cited']}{span and f' -> {span}'}"


CHECK_CITATIONS = Tool(
    name="CheckCitations",
    description=(
        "Check `path:10-20` references, links and quoted code of a text against the files of now: "
        "ok, moved (where to), changed, gone. Use it before you rely on older notes or answers."
    ),
    parameters=schema(
        {
            "text": text(MAX_TEXT),
            "repository": REPOSITORY,
            "commit": text(MAX_NAME, "Whose lines they are."),
        },
        "text",
    ),
    function=_output,
    title="Check citations",
    need="whether cited lines still hold",
    output_schema=object_schema({"results": list_schema(_ROW)}, _NOTES),
    compact=_compact,
    compact_schema=object_schema({"results": _LINES}, _NOTES),
    quoted=_compact,
    route="check-citations",
    errors=OF_SYMBOLS,
    progress="Checking citations",
    empty_hint="No citation was found. Write src/a.py:10-20, with the code in a fence below it.",
    result_words=("citation", "citations"),
)
