"""The tools, from what each says of itself, and the list of repositories."""

from apps.core.values.json_schema import BOOLEAN, COUNT, OBJECT, TEXT, list_schema, object_schema
from apps.site.openapi.operation import Operation
from apps.tools.errors import BUSY, NO_TEXTS, OF_SEARCHES
from apps.tools.list_repositories import LIST_REPOSITORIES
from apps.tools.tool import Tool
from apps.tools.tools import TOOLS


def operation(tool: Tool) -> Operation:
    # The routes ignore members that the schema does not name.
    body = {key: value for key, value in tool.parameters.items() if key != "additionalProperties"}
    return Operation(tool.title, {200: tool.output_schema}, tool.errors, body=body)


BOX = {
    "box": TEXT | {"description": "What to search for (docs/retrieval.md). Required."},
    "repository": TEXT | {"description": "The id of a repository; may repeat."},
    "path": TEXT | {"description": "The beginning of a path, or a glob."},
    "language": TEXT,
    "limit": {"type": "integer", "description": "1 to 20, by default 5."},
    "page": {"type": "integer", "description": "1 to 100."},
}
_FOUND = object_schema(
    {"results": list_schema(OBJECT)},
    {
        "hints": list_schema(TEXT) | {"description": "What was not understood."},
        "lines": COUNT,
        "files": {"description": "Their number; of words alone as of VectorSearch."},
        "exact": BOOLEAN | {"description": "False: there are more."},
        "facets": {
            "type": "object",
            "additionalProperties": {"type": "object", "additionalProperties": COUNT},
        },
    },
)

OPERATIONS = {
    "GET /search": Operation(
        "Search in the language of the search page. Without `box`, the page",
        {200: _FOUND},
        (*OF_SEARCHES, NO_TEXTS, BUSY),
        BOX,
        media={"text/html": TEXT},
    ),
    **{f"POST /tools/{tool.route}": operation(tool) for tool in TOOLS if tool.route},
    "GET /tools/ingested-repos": Operation(
        "The repositories that can be searched", {200: LIST_REPOSITORIES.output_schema}
    ),
}
