"""Search, symbols and repositories."""

from apps.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from apps.core.values.json_schema import (
    BOOLEAN,
    NOT_BLANK,
    TEXT,
    list_schema,
    object_schema,
    one_of,
)
from apps.lookup.symbols.call_types import DIRECTIONS
from apps.site.openapi.operation import Operation
from apps.tools.tools import TOOLS


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
CURSOR = TEXT | {"description": "`nextCursor` of the page before."}
PAGES = {"limit": limit(100, 20), "cursor": CURSOR}
NAME = object_schema({"name": TEXT | {"pattern": r"\w"}}, {**FILTERS, **PAGES})

NO_REPOSITORY = NotFound(
    "There is no such repository.", code="REPO_NOT_FOUND", details={"repo": ""}
)
NOT_INGESTED = Conflict("Nothing is ingested.", code="INGEST_REQUIRED")
NO_WORDS = Unavailable("The word index cannot be read.", code="LEXICAL_UNAVAILABLE")
NO_FILE = NotFound("There is no such file.", code="FILE_NOT_FOUND")
INVALID = InvalidInput("Wrong.", details={"details": ["query is required"]})
NO_TEXTS = Unavailable("The text store cannot be read.", code="TEXTS_UNAVAILABLE")
EXPIRED = Conflict("What is listed has changed.", code="CURSOR_EXPIRED")
OTHER_CURSOR = InvalidInput("Not of this call.", code="CURSOR_INVALID", details={"details": [""]})
PAGED = (OTHER_CURSOR, EXPIRED)
BUSY = Unavailable("Too much is computed.", code="OVERLOADED", details={"retryAfter": 5})
TEXTS = (INVALID, NO_REPOSITORY, NOT_INGESTED, NO_TEXTS, BUSY)
BAD_PATTERN = InvalidInput("Wrong pattern.", code="BAD_PATTERN", details={"details": [""]})
OFFSET = {"type": "integer", "description": "Results to skip, without a cursor; by default 0."}
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

ANSWERS = {tool.name: tool.output_schema for tool in TOOLS}

OPERATIONS = {
    "POST /tools/vector-search": Operation(
        "Search all code by vectors and words",
        {200: ANSWERS["VectorSearch"]},
        SEARCH,
        body=object_schema({"query": NOT_BLANK}, {**FILTERS, "limit": limit(20, 5)}),
    ),
    "POST /tools/symbol-definitions": Operation(
        "Where a name is defined",
        {200: ANSWERS["FindDefinitions"]},
        (*SYMBOLS, *PAGED),
        body=NAME,
    ),
    "POST /tools/symbol-references": Operation(
        "Where a name is used",
        {200: ANSWERS["FindReferences"]},
        (*SYMBOLS, *PAGED),
        body=NAME,
    ),
    "POST /tools/find-callers": Operation(
        "Who calls a definition",
        {200: ANSWERS["FindCallers"]},
        (*SYMBOLS, *PAGED),
        body=object_schema(
            {"name": TEXT | {"pattern": r"\w"}}, {**FILTERS, "depth": limit(3, 1), **PAGES}
        ),
    ),
    "POST /tools/find-imports": Operation(
        "Who imports a file, and what it imports",
        {200: ANSWERS["FindImports"]},
        (*SYMBOLS, *PAGED),
        body=object_schema(
            {"name": TEXT | {"pattern": r"\w"}},
            {**FILTERS, "direction": one_of(*DIRECTIONS), **PAGES},
        ),
    ),
    "POST /tools/file-outline": Operation(
        "The definitions of a file",
        {200: ANSWERS["FileOutline"]},
        (*SYMBOLS, NO_FILE),
        body=object_schema({"repository": NOT_BLANK, "path": NOT_BLANK}),
    ),
    "POST /tools/grep": Operation(
        "Lines that match a pattern",
        {200: ANSWERS["Grep"]},
        (
            *TEXTS,
            *PAGED,
            InvalidInput("Wrong pattern.", code="BAD_PATTERN", details={"details": [""]}),
        ),
        body=object_schema(
            {"pattern": TEXT | {"minLength": 1}},
            {
                **FILTERS,
                **dict.fromkeys(("fixed", "ignore_case", "word", "multiline"), BOOLEAN),
                "mode": one_of("content", "files", "count"),
                "context": {"type": "integer", "description": "0 to 20 lines around each match."},
                "limit": limit(500, 50),
                "cursor": CURSOR,
                "offset": OFFSET,
            },
        ),
    ),
    "POST /tools/read-file": Operation(
        "Numbered lines of a file",
        {200: ANSWERS["ReadFile"]},
        (*TEXTS, NO_FILE, Unavailable("The text is lost.", code="TEXT_LOST")),
        body=object_schema(
            {"repository": NOT_BLANK, "path": NOT_BLANK},
            {"lines": TEXT | {"description": "Ranges: `10-40, 90-`."}},
        ),
    ),
    "POST /tools/list-files": Operation(
        "Files that match, or a tree of folders",
        {200: ANSWERS["ListFiles"]},
        (*TEXTS, *PAGED),
        body=object_schema(
            {},
            {
                **FILTERS,
                "depth": limit(20, 2),
                "skipped": BOOLEAN,
                "limit": limit(1_000, 100),
                "cursor": CURSOR,
                "offset": OFFSET,
            },
        ),
    ),
    "POST /tools/context": Operation(
        "Everything that answers a question, packed into a number of tokens",
        {200: ANSWERS["Context"]},
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
        {200: ANSWERS["VectorSearch"]},
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
        "The repositories that can be searched", {200: ANSWERS["ListIngestedRepositories"]}
    ),
}
