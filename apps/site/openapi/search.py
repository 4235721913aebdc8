"""Search, symbols and repositories."""

from apps.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from apps.core.json_schema import NOT_BLANK, TEXT, list_schema, object_schema
from apps.retrieval import output_schemas
from apps.site.openapi.operation import Operation


def limit(most: int, default: int) -> dict[str, object]:
    return {"type": "integer", "description": f"1 to {most}, by default {default}."}


REPOSITORY = {
    "anyOf": [TEXT, list_schema(NOT_BLANK)],
    "description": "The id of a repository, its folder, or several; without it, all are searched.",
}
FILTERS = {
    "repository": REPOSITORY,
    "path": TEXT | {"description": "The beginning of paths, or a glob: `*.{ts,tsx}`."},
    "language": TEXT | {"description": "A language, or the extension of a file."},
}
LINE = {"type": "integer", "minimum": 1}
NAME = object_schema({"name": TEXT | {"pattern": r"\w"}}, {**FILTERS, "limit": limit(100, 20)})

NO_REPOSITORY = NotFound(
    "There is no such repository.", code="REPO_NOT_FOUND", details={"repo": ""}
)
NOT_INGESTED = Conflict("Nothing is ingested.", code="INGEST_REQUIRED")
NO_WORDS = Unavailable("The word index cannot be read.", code="LEXICAL_UNAVAILABLE")
NO_FILE = NotFound("There is no such file.", code="FILE_NOT_FOUND")
INVALID = InvalidInput("Wrong.", details={"details": ["query is required"]})
NO_LINES = NotFound("The file has no such lines.", code="LINES_NOT_FOUND")
SYMBOLS = (INVALID, NO_REPOSITORY, NOT_INGESTED, NO_WORDS)
SEARCH = (
    *SYMBOLS,
    Unavailable(
        "The embedding server does not have the model.",
        code="EMBED_MODEL_MISSING",
        details={"modelId": ""},
        retryable=False,
    ),
    Unavailable(
        "The embedding server does not answer.",
        code="EMBEDDER_UNAVAILABLE",
        details={"modelId": ""},
    ),
    Unavailable("Chroma does not answer.", code="CHROMA_UNAVAILABLE"),
)

OPERATIONS = {
    "POST /tools/vector-search": Operation(
        "Search all code by vectors and words",
        {200: output_schemas.MATCHES},
        SEARCH,
        body=object_schema({"query": NOT_BLANK}, {**FILTERS, "limit": limit(20, 5)}),
    ),
    "POST /tools/symbol-definitions": Operation(
        "Where a name is defined", {200: output_schemas.DEFINITIONS}, SYMBOLS, body=NAME
    ),
    "POST /tools/symbol-references": Operation(
        "Where a name is used", {200: output_schemas.REFERENCES}, SYMBOLS, body=NAME
    ),
    "POST /tools/file-outline": Operation(
        "The definitions of a file",
        {200: output_schemas.OUTLINE},
        (*SYMBOLS, NO_FILE),
        body=object_schema({"repository": NOT_BLANK, "path": NOT_BLANK}),
    ),
    "POST /tools/context": Operation(
        "Everything that answers a question, packed into a number of tokens",
        {200: output_schemas.CONTEXT},
        SEARCH,
        body=object_schema(
            {"question": NOT_BLANK},
            {
                **FILTERS,
                "max_tokens": {
                    "type": "integer",
                    "description": "200 to 20,000, by default 4,000.",
                },
            },
        ),
    ),
    "POST /tools/related-code": Operation(
        "Passages like some lines of a file",
        {200: output_schemas.MATCHES},
        (*SEARCH, NO_FILE, NO_LINES),
        body=object_schema(
            {"repository": NOT_BLANK, "path": NOT_BLANK, "start_line": LINE},
            {
                "end_line": LINE,
                "within": REPOSITORY,
                "within_path": FILTERS["path"],
                "language": FILTERS["language"],
                "limit": limit(20, 5),
            },
        ),
    ),
    "GET /tools/ingested-repos": Operation(
        "The repositories that can be searched", {200: output_schemas.REPOSITORIES}
    ),
}
