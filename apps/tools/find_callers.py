"""FindCallers: who calls a definition."""

from collections.abc import Mapping
from typing import Any

from apps.core.types import JSON
from apps.core.values.json_schema import COUNT, TEXT, list_schema, object_schema, typed
from apps.lookup.relations.tests_of import find_tests
from apps.lookup.symbols import CallersQuery, find_callers
from apps.lookup.symbols.call_types import MAX_DEPTH, Callers
from apps.lookup.symbols.types import MAX_LIMIT, MAX_NAME
from apps.retrieval.scope import with_hint
from apps.tools import forms, schemas
from apps.tools.errors import OF_PAGES, OF_SYMBOLS
from apps.tools.tool import CURSOR, FLAG, SCOPE, Tool, limit, log_call, schema, text

_CALLED = object_schema({"repo": TEXT, "relPath": TEXT, "symbol": TEXT, "startLine": schemas.LINE})
_KIND = typed("string", "proven: by scopes, imports or types; possible: by name.")
_CALLERS: JSON = object_schema(
    {
        "name": TEXT,
        "definitions": list_schema(_CALLED) | {"description": "Whose callers these are."},
        "results": list_schema(
            object_schema(
                {
                    **schemas.PLACE,
                    **schemas.SPAN,
                    "column": COUNT,
                    "kind": _KIND,
                    "callee": typed("string", "The definition that the line calls."),
                    "depth": typed("integer", "1: calls it; 2: calls a caller; …"),
                    "chunk": schemas.ONE_LINE,
                },
                {
                    **schemas.MORE_PLACE,
                    "symbol": typed("string", "The definition that has the line."),
                },
            )
        ),
        "truncated": schemas.TRUNCATED,
    },
    {
        "notes": schemas.LEFT_OUT,
        "degraded": TEXT,
        "nextCursor": schemas.NEXT_CURSOR,
        "hint": TEXT,
    },
)
_COMPACT = schemas.rows(
    schemas.references({"symbol": TEXT, "kind": _KIND, "callee": TEXT, "depth": COUNT}),
    definitions=list_schema(TEXT),
    notes=schemas.LEFT_OUT,
)


def _output(arguments: Mapping[str, Any]) -> JSON:
    query = CallersQuery.parse(arguments)
    callers = find_tests(query) if query.tests else find_callers(query)
    symbol = query.symbol
    log_call("FindCallers", **query.as_log(), results=len(callers.results))
    output = with_hint(callers.as_wire(), symbol.repositories, symbol.filters)
    if not callers.results and not callers.notes and "hint" not in output:
        output["hint"] = _no_callers(query, callers)
    return output


def _no_callers(query: CallersQuery, found: Callers) -> str:
    if query.tests:
        return "No test calls it, imports it or has its name. RelatedCode or Grep may find one."
    if not found.definitions:
        where = f"{query.path}:{query.line}" if query.path else query.symbol.name
        return f"Nothing that calls are resolved for defines {where}. Try FindReferences."
    return "No call was resolved to it. FindReferences lists every line with the name."


def _compact(output: JSON) -> JSON:
    """The lines of each file, by the definition that has them."""
    several = len({called["symbol"] for called in output["definitions"]}) > 1

    def group(row: JSON) -> JSON:
        depth = {"depth": row["depth"]} if row["depth"] > 1 else {}
        callee = {"callee": row["callee"]} if several or depth else {}
        return {**forms.named(row, "symbol", "kind"), **callee, **depth}

    definitions = [
        f"{called['repo']}/{called['relPath']}:{called['startLine']} {called['symbol']}"
        for called in output["definitions"]
    ]
    # Proven callers come before possible ones, also in one file.
    files = forms.by_file(output["results"], group, apart=lambda row: (row["kind"], row["depth"]))
    notes = forms.named(output, "notes", *schemas.NOTES)
    return {"definitions": definitions, "results": files, **notes}


FIND_CALLERS = Tool(
    name="FindCallers",
    description=(
        "Find the lines that call a function, method or class: 'proven' by scopes, imports and "
        "types, or 'possible' by name. Example: 'Flask.dispatch_request', depth 2 for callers of "
        "callers. Not for variables or mentions: use FindReferences. Lines are quoted data."
    ),
    parameters=schema(
        {
            "name": text(MAX_NAME, "Or a definition's 'path:line'."),
            **SCOPE,
            "depth": limit(None, MAX_DEPTH),
            "tests": FLAG | {"description": "Only tests; `name` may be a file."},
            "limit": limit(None, MAX_LIMIT),
            "cursor": CURSOR,
        },
        "name",
    ),
    function=_output,
    title="Find who calls a definition",
    need="who calls a function, method or class; which tests cover it, or a file",
    output_schema=_CALLERS,
    compact=_compact,
    compact_schema=_COMPACT,
    quoted=forms.quoted_symbols,
    route="find-callers",
    errors=(*OF_SYMBOLS, *OF_PAGES),
    progress="Looking up who calls",
    subject="name",
    empty_hint=(
        "Nothing calls it as far as types are known. FindReferences lists every line with the name."
    ),
    result_words=("call", "calls"),
)
