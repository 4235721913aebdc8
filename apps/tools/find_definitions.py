"""FindDefinitions: where a name is defined."""

from apps.core.types import JSON
from apps.core.values.json_schema import TEXT, object_schema, typed
from apps.lookup.symbols import find_definitions
from apps.tools import forms, schemas
from apps.tools.by_name import by_name
from apps.tools.errors import OF_PAGES, OF_SYMBOLS
from apps.tools.tool import QUOTED

_DEFINITION = object_schema(
    {
        **schemas.PLACE,
        **schemas.SYMBOL,
        "chunk": typed("string", "The beginning of its text: quoted data."),
    },
    {**schemas.MORE_PLACE, "note": schemas.PARSER_NOTE},
)
_DEFINITIONS: JSON = schemas.results(
    _DEFINITION,
    {
        "name": TEXT,
        "match": typed("string", "How the name was found: exact, case-insensitive, last-part."),
        "truncated": schemas.TRUNCATED,
    },
    {"nextCursor": schemas.NEXT_CURSOR},
)
_KIND_AND_NOTE: JSON = {"kind": TEXT, "note": schemas.PARSER_NOTE}
_COMPACT = schemas.rows(object_schema(schemas.PASSAGE, schemas.WHERE | _KIND_AND_NOTE), match=TEXT)


def _compact(output: JSON) -> JSON:
    rows = [
        forms.passage(row, "symbol", "kind", "note") | forms.text(row) for row in output["results"]
    ]
    match = {} if output["match"] == "exact" else {"match": output["match"]}
    return {**match, "results": rows} | forms.named(output, *schemas.NOTES)


FIND_DEFINITIONS = by_name(
    "FindDefinitions",
    find_definitions,
    description=(
        "Find where a name is defined: functions, classes, methods, types, constants, with path, "
        "lines, kind and the beginning of the text. Use it whenever you "
        "know the name. Example: 'retry' or 'Client.retry'. `match` is 'exact', "
        "'case-insensitive', or 'last-part' if only the last part is known. " + QUOTED
    ),
    has_passages=True,
    title="Find where a name is defined",
    need="where a name is defined",
    output_schema=_DEFINITIONS,
    compact=_compact,
    compact_schema=_COMPACT,
    quoted=forms.quoted_symbols,
    route="symbol-definitions",
    errors=(*OF_SYMBOLS, *OF_PAGES),
    progress="Looking up where it is defined:",
    empty_hint=(
        "Nothing ingested defines this name; it may come from a library. Check the spelling, look "
        "into all repositories without filters, or describe it to VectorSearch."
    ),
    result_words=("definition", "definitions"),
)
