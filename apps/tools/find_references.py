"""FindReferences: every line that uses a name."""

from apps.core.types import JSON
from apps.core.values.json_schema import COUNT, TEXT, list_schema, object_schema, typed
from apps.lookup.symbols import find_references
from apps.tools import forms, schemas
from apps.tools.by_name import by_name
from apps.tools.errors import OF_PAGES, OF_SYMBOLS
from apps.tools.tool import QUOTED

_REFERENCE = object_schema(
    {
        **schemas.PLACE,
        "startLine": schemas.LINE,
        "endLine": schemas.LINE,
        "columns": list_schema(COUNT),
        "kind": typed("string", "definition or reference"),
        "match": typed("string", "identifier: not in a comment or string; word: may be in one."),
        "chunk": schemas.ONE_LINE,
    },
    {**schemas.MORE_PLACE, "symbol": typed("string", "The definition that contains the line.")},
)
_REFERENCES: JSON = schemas.results(
    _REFERENCE,
    {"name": TEXT, "truncated": schemas.TRUNCATED},
    {"nextCursor": schemas.NEXT_CURSOR},
)
_LINES = list_schema(TEXT) | {"description": forms.HEADED}
_COMPACT = schemas.rows(object_schema(schemas.FILE | {"references": _LINES}, {"match": TEXT}))


def _compact(output: JSON) -> JSON:
    """The lines of each file, by the definition that has them; those of words apart."""
    files = forms.headed(
        output["results"],
        "references",
        head=lambda row: {"match": "word"} if row["match"] == "word" else {},
    )
    return {"results": files} | forms.named(output, *schemas.NOTES)


FIND_REFERENCES = by_name(
    "FindReferences",
    find_references,
    description=(
        "Find every line that uses an identifier: calls, imports, annotations, overrides, each "
        "with the definition that contains it. "
        "Only the last part counts: 'Client.get' finds all uses of 'get'. Not for text in comments "
        "and strings: use Grep. " + QUOTED
    ),
    title="Find where a name is used",
    need="every line that uses a name",
    output_schema=_REFERENCES,
    compact=_compact,
    compact_schema=_COMPACT,
    quoted=forms.quoted_symbols,
    route="symbol-references",
    errors=(*OF_SYMBOLS, *OF_PAGES),
    progress="Looking up where it is used:",
    empty_hint=(
        "No line uses this identifier. Check the spelling and the case, or leave out "
        "`repository` and filters."
    ),
    result_words=("line", "lines"),
)
