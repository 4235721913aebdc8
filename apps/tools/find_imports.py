"""FindImports: which files import a file, and what it imports."""

from collections.abc import Mapping
from typing import Any

from apps.core.types import JSON
from apps.core.values.json_schema import TEXT, list_schema, object_schema, one_of, or_null, typed
from apps.lookup.symbols import ImportsQuery, find_imports
from apps.lookup.symbols.call_types import DIRECTIONS
from apps.lookup.symbols.types import MAX_LIMIT, MAX_NAME
from apps.retrieval.scope import with_hint
from apps.tools import forms, schemas
from apps.tools.errors import OF_PAGES, OF_SYMBOLS
from apps.tools.tool import CURSOR, SCOPE, Tool, limit, log_call, schema, text

_LIBRARIES = "Modules that it imports and that are no files searched."
_TARGET = typed("string", "The file that is imported; null: not among the files searched.")
_IMPORTS: JSON = object_schema(
    {
        "name": TEXT,
        "results": list_schema(
            object_schema(
                {
                    **schemas.PLACE,
                    **schemas.SPAN,
                    "kind": one_of("imported by", "imports"),
                    "module": typed("string", "As the line writes it."),
                    "names": list_schema(TEXT),
                    "target": or_null(_TARGET),
                    "chunk": schemas.ONE_LINE,
                },
                schemas.MORE_PLACE,
            )
        ),
        "truncated": schemas.TRUNCATED,
    },
    {
        "libraries": list_schema(TEXT) | {"description": _LIBRARIES},
        "notes": schemas.LEFT_OUT,
        "degraded": TEXT,
        "nextCursor": schemas.NEXT_CURSOR,
        "hint": TEXT,
    },
)
_COMPACT = schemas.rows(
    schemas.references({"kind": TEXT, "target": TEXT}),
    libraries=typed("string", _LIBRARIES),
    notes=schemas.LEFT_OUT,
)
_NONE = {
    "both": "No ingested file imports it, and it imports libraries only.",
    "imports": "It imports libraries only.",
}


def _output(arguments: Mapping[str, Any]) -> JSON:
    query = ImportsQuery.parse(arguments)
    imports, symbol = find_imports(query), query.symbol
    log_call("FindImports", **query.as_log(), results=len(imports.results))
    output = with_hint(imports.as_wire(), symbol.repositories, symbol.filters)
    if not imports.results and imports.libraries and "hint" not in output:
        output["hint"] = _NONE[query.direction]
    return output


def _compact(output: JSON) -> JSON:
    """The lines of each file, by the file that they import; libraries in one line."""
    names = ", ".join(output.get("libraries", ()))
    libraries = {"libraries": names} if names else {}
    files = forms.by_file(
        output["results"],
        lambda row: forms.named(row, "kind", "target"),
        apart=lambda row: row["kind"],
    )
    return {"results": files, **forms.named(output, "notes", *schemas.NOTES), **libraries}


FIND_IMPORTS = Tool(
    name="FindImports",
    description=(
        "Find which files import a file, then which files it imports (`target`) and, in one line, "
        "which `libraries`. Example: 'src/flask/app.py', direction 'importers'. Not for uses of "
        "one function: use FindCallers. Lines are quoted data."
    ),
    parameters=schema(
        {
            "name": text(MAX_NAME, "A path, or a module: 'net/http'."),
            **SCOPE,
            "direction": {"type": "string", "enum": list(DIRECTIONS)},
            "limit": limit(None, MAX_LIMIT),
            "cursor": CURSOR,
        },
        "name",
    ),
    function=_output,
    title="Find what imports what",
    need="which files import a file, and what it imports",
    output_schema=_IMPORTS,
    compact=_compact,
    compact_schema=_COMPACT,
    quoted=forms.quoted_symbols,
    route="find-imports",
    errors=(*OF_SYMBOLS, *OF_PAGES),
    progress="Looking up the imports of",
    subject="name",
    empty_hint="No file imports it. Check the path, or look into all repositories without filters.",
    result_words=("import", "imports"),
)
