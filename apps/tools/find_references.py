"""FindReferences: every line that uses a name."""

from apps.core.types import JSON
from apps.core.values.json_schema import COUNT, TEXT, list_schema, object_schema, typed
from apps.lookup.relations.implementations import find_implementations
from apps.lookup.symbols import find_references
from apps.tools import forms, schemas
from apps.tools.by_name import Other, by_name
from apps.tools.errors import OF_PAGES, OF_SYMBOLS
from apps.tools.tool import QUOTED

_REFERENCE = object_schema(
    {
        **schemas.PLACE,
        **schemas.SPAN,
        "kind": typed("string", "definition, reference or implementation"),
        "chunk": schemas.ONE_LINE,
    },
    {
        **schemas.MORE_PLACE,
        "columns": list_schema(COUNT),
        "match": typed("string", "identifier: not in a comment or string; word: may be in one."),
        "symbol": typed("string", "The definition that contains the line, or that it is."),
        "of": typed("string", "What it extends, implements or overrides."),
        "certainty": typed("string", "proven: by scopes and imports; possible: by name."),
    },
)
_REFERENCES: JSON = schemas.results(
    _REFERENCE,
    {"name": TEXT, "truncated": schemas.TRUNCATED},
    {"notes": schemas.LEFT_OUT, "nextCursor": schemas.NEXT_CURSOR},
)
_LINES = {
    "type": "object",
    "additionalProperties": list_schema(TEXT),
    "description": f"Path → {forms.HEADED}",
}
_COMPACT = schemas.rows(
    object_schema(
        {"repo": TEXT, "references": _LINES}, {"match": TEXT, "kind": TEXT, "certainty": TEXT}
    ),
    notes=schemas.LEFT_OUT,
)


def _compact(output: JSON) -> JSON:
    """The lines of each repository by file, and by the definition that has them; those of words
    apart, and possible ones."""
    repositories: dict[str, JSON] = {}
    for file in forms.headed(output["results"], "references", head=_head):
        path, lines = file.pop("relPath"), file.pop("references")
        repositories.setdefault(str(file), file | {"references": {}})["references"][path] = lines
    notes = forms.named(output, "notes", *schemas.NOTES)
    return {"results": list(repositories.values())} | notes


def _head(row: JSON) -> JSON:
    if row["kind"] == "implementation":
        is_proven = row["certainty"] == "proven"
        return {"kind": row["kind"]} | ({} if is_proven else {"certainty": row["certainty"]})
    return {"match": "word"} if row["match"] == "word" else {}


FIND_REFERENCES = by_name(
    "FindReferences",
    find_references,
    others={
        "implementations": Other(
            find_implementations,
            "Nothing that is ingested extends, implements or overrides it, as far as is known. "
            "Leave out `kind` to see all lines with the name.",
        )
    },
    description=(
        "Find every line that uses an identifier: calls, imports, annotations, each with the "
        "definition that contains it; or, by `kind`, subtypes of a type and overrides of a method. "
        "Only the last part counts: 'Client.get' finds all uses of 'get'. Not for text in comments "
        "and strings: use Grep. " + QUOTED
    ),
    title="Find where a name is used",
    need="every line that uses a name; subtypes and overrides",
    output_schema=_REFERENCES,
    compact=_compact,
    compact_schema=_COMPACT,
    quoted=forms.quoted_symbols,
    route="symbol-references",
    errors=(*OF_SYMBOLS, *OF_PAGES),
    progress="Looking up where it is used:",
    empty_hint=(
        "No line uses this identifier. Check the spelling and the case, or look into "
        "all repositories without filters."
    ),
    result_words=("line", "lines"),
)
