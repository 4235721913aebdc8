"""FileOutline: what a file defines."""

from collections.abc import Iterator, Mapping
from typing import Any

from apps.core.types import JSON
from apps.core.values.json_schema import TEXT, list_schema, object_schema, typed
from apps.lookup.symbols import OutlineQuery, file_outline
from apps.lookup.symbols.types import flattened
from apps.tools import schemas
from apps.tools.errors import NO_FILE, OF_SYMBOLS
from apps.tools.forms import named, place, span
from apps.tools.tool import FILE_PATH, QUOTED, REPOSITORY_ID, Tool, log_call, schema

_OUTLINE: JSON = object_schema(
    {
        **schemas.PLACE,
        "symbols": list_schema(
            object_schema(
                schemas.SYMBOL,
                {
                    "children": list_schema(typed("object", "Those inside, in the same form.")),
                    **schemas.CELL,
                },
            )
        ),
    },
    {**schemas.MORE_PLACE, "note": schemas.PARSER_NOTE, "truncated": schemas.TRUNCATED},
)
_COMPACT = object_schema(
    {
        **schemas.FILE,
        "symbols": list_schema(TEXT) | {"description": "Lines, kind and signature, indented."},
    },
    {key: schemas.NOTES[key] for key in ("degraded", "truncated")} | {"note": schemas.PARSER_NOTE},
)


def _output(arguments: Mapping[str, Any]) -> JSON:
    query = OutlineQuery.parse(arguments)
    answer = file_outline(query)
    log_call(
        "FileOutline", repository=query.repository, results=sum(1 for _ in flattened(answer.items))
    )
    return answer.as_wire()


def _indented(symbols: list[JSON]) -> Iterator[tuple[str, JSON]]:
    """Each symbol after the spaces of its depth, outer ones first."""
    stack = [(0, symbol) for symbol in reversed(symbols)]
    while stack:
        depth, symbol = stack.pop()
        yield "  " * depth, symbol
        stack.extend((depth + 1, child) for child in reversed(symbol.get("children", [])))


def _compact(output: JSON) -> JSON:
    """A line for each definition, indented by its depth."""
    lines = [
        f"{indent}{span(symbol)} {symbol['kind']} {symbol['signature'] or symbol['name']}"
        + (f" (cell {symbol['cell']})" if "cell" in symbol else "")
        for indent, symbol in _indented(output["symbols"])
    ]
    facts = named(output, "repo", "relPath", "note", "degraded", "truncated")
    return facts | {"symbols": lines}


def _quoted(payload: JSON) -> JSON:
    """One line for each definition, indented by its depth."""
    lines = [
        f"{indent}{symbol.get('startLine')}-{symbol.get('endLine')} {symbol.get('kind')}: "
        f"{symbol.get('signature') or symbol.get('name')}"
        for indent, symbol in _indented(payload.get("symbols", []))
    ]
    file = place(payload.get("repo", ""), payload.get("relPath", ""), None, None)
    return {"file": file, "outline": "\n".join(lines), **named(payload, "note")}


FILE_OUTLINE = Tool(
    name="FileOutline",
    description=(
        "List what one file defines, nested, or the headings of a document, with "
        "kind, lines and signature. Use it before you read parts of the file. " + QUOTED
    ),
    parameters=schema({"repository": REPOSITORY_ID, "path": FILE_PATH}, "repository", "path"),
    function=_output,
    title="Outline a file",
    need="what a file defines",
    output_schema=_OUTLINE,
    compact=_compact,
    compact_schema=_COMPACT,
    quoted=_quoted,
    route="file-outline",
    errors=(*OF_SYMBOLS, NO_FILE),
    progress="Reading the outline of",
    subject="path",
    empty_hint="The file defines nothing, or codeinfo has no grammar for its language.",
    result_words=("definition", "definitions"),
)
