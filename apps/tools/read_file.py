"""ReadFile: numbered lines of a file."""

from collections.abc import Mapping
from typing import Any

from apps.core.types import JSON
from apps.core.values.json_schema import COUNT, TEXT, list_schema, object_schema, typed
from apps.lookup.texts.reading import MAX_RANGES_TEXT, ReadQuery, read_lines
from apps.tools import schemas
from apps.tools.errors import NO_FILE, OF_TEXTS, TEXT_LOST
from apps.tools.forms import named, numbered, with_file
from apps.tools.tool import FILE_PATH, QUOTED, REPOSITORY_ID, Tool, log_call, schema, text

_NOTES: JSON = {
    "generation": COUNT,
    "totalLines": COUNT,
    "changed": typed("string", "Set if the file on disk differs from this text."),
    "outline": list_schema(TEXT) | {"description": "Lines, kind and signature, indented."},
    "degraded": TEXT,
    "truncated": schemas.TRUNCATED,
    "hint": schemas.TEXT_NOTES["hint"],
}
_PART = object_schema(
    {
        **schemas.PLACE,
        **schemas.SPAN,
        "kind": TEXT,
        "chunk": schemas.QUOTE,
    },
    schemas.MORE_PLACE,
)
_READ = object_schema({**schemas.PLACE, "results": list_schema(_PART)}, schemas.MORE_PLACE | _NOTES)
_LINES = list_schema(TEXT) | {"description": "`12: text`, or `12- text` for context."}
_COMPACT = object_schema({**schemas.FILE, "text": _LINES}, _NOTES)


def _output(arguments: Mapping[str, Any]) -> JSON:
    query = ReadQuery.parse(arguments)
    output = read_lines(query)
    log_call("ReadFile", repository=query.repository, results=len(output["results"]))
    return output


def _compact(output: JSON) -> JSON:
    """All numbered lines in one list."""
    text = [line for row in output["results"] for line in numbered(row)]
    names = ("generation", "totalLines", "changed", "outline")
    place = named(output, "repo", "relPath", *names)
    return place | {"text": text} | named(output, "degraded", "truncated", "hint")


READ_FILE = Tool(
    name="ReadFile",
    description=(
        "Read numbered lines of one ingested file. A large file without `lines` gives its outline "
        "and first lines. Example: lines '10-40, 200-230'. Says when the file on disk differs. "
        "Use it after a search, to see around a result. " + QUOTED
    ),
    parameters=schema(
        {
            "repository": REPOSITORY_ID,
            "path": FILE_PATH,
            "lines": text(MAX_RANGES_TEXT, "Ranges; '90-' is to the end. Or 'cells 3-5'."),
        },
        "repository",
        "path",
    ),
    function=_output,
    title="Read lines of a file",
    need="numbered lines of a file",
    output_schema=_READ,
    compact=_compact,
    compact_schema=_COMPACT,
    quoted=lambda payload: with_file(_compact(payload)),
    route="read-file",
    errors=(*OF_TEXTS, NO_FILE, TEXT_LOST),
    progress="Reading",
    subject="path",
    empty_hint="The file has no lines.",
    result_words=("part", "parts"),
)
