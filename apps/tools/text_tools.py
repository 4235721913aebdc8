"""The tools that read exact text: Grep, ReadFile and ListFiles."""

from collections.abc import Mapping
from typing import Any

from apps.core.types import JSON
from apps.lookup.texts.grep_page import grep
from apps.lookup.texts.grep_query import (
    DEFAULT_LIMIT,
    MAX_CONTEXT,
    MAX_LIMIT,
    MODES,
    GrepQuery,
)
from apps.lookup.texts.listing import DEFAULT_DEPTH, MAX_DEPTH, ListQuery, list_files
from apps.lookup.texts.listing import DEFAULT_LIMIT as DEFAULT_FILES
from apps.lookup.texts.listing import MAX_LIMIT as MAX_FILES
from apps.lookup.texts.patterns import MAX_PATTERN
from apps.lookup.texts.reading import MAX_RANGES_TEXT, ReadQuery, read_lines
from apps.retrieval.scope import with_hint
from apps.tools import compact_texts as compact
from apps.tools import text_schemas as schemas
from apps.tools.quoted import quoted_grep, quoted_read
from apps.tools.tool import (
    CURSOR,
    FILE_PATH,
    LANGUAGE,
    PATH,
    QUOTED,
    REPOSITORY,
    REPOSITORY_ID,
    Tool,
    limit,
    log_call,
    schema,
)

FLAG: JSON = {"type": "boolean"}
OFFSET: JSON = {"type": "integer"}  # what clients used before there were cursors


def grep_output(arguments: Mapping[str, Any]) -> JSON:
    """What Grep returns, uncut."""
    query = GrepQuery.parse(arguments)
    output = with_hint(grep(query), query.repositories, query.filters)
    log_call("Grep", **query.as_log(), results=len(output["results"]))
    return output


def read_output(arguments: Mapping[str, Any]) -> JSON:
    """What ReadFile returns."""
    query = ReadQuery.parse(arguments)
    output = read_lines(query)
    log_call("ReadFile", repository=query.repository, results=len(output["results"]))
    return output


def list_output(arguments: Mapping[str, Any]) -> JSON:
    """What ListFiles returns, uncut."""
    query = ListQuery.parse(arguments)
    output = with_hint(list_files(query), query.repositories, query.filters)
    scope = ", ".join(query.repositories) or "all"
    log_call("ListFiles", repository=scope, results=len(output["results"]))
    return output


GREP = Tool(
    name="Grep",
    description=(
        "Find lines that match a regular expression (RE2) or fixed text in the ingested files, "
        "each with path, line number and the definition that contains it; definitions of an "
        "identifier in the pattern first. Use it for exact text: messages, options, calls. "
        "Example: 'raise \\w+Timeout', path 'src/'. Not for a question in words: use VectorSearch. "
        + QUOTED
    ),
    parameters=schema(
        {
            "pattern": {"type": "string", "maxLength": MAX_PATTERN},
            "fixed": FLAG,
            "ignore_case": FLAG,
            "word": FLAG,
            "multiline": FLAG,
            "mode": {"type": "string", "enum": list(MODES), "default": MODES[0]},
            "context": {
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_CONTEXT,
                "description": "Lines around each match.",
            },
            "repository": REPOSITORY,
            "path": PATH,
            "language": LANGUAGE,
            "limit": limit(DEFAULT_LIMIT, MAX_LIMIT),
            "cursor": CURSOR,
            "offset": OFFSET,
        },
        "pattern",
    ),
    function=grep_output,
    title="Find exact text",
    output_schema=schemas.GREP,
    compact=compact.compact_grep,
    compact_schema=schemas.COMPACT_GREP,
    quoted=quoted_grep,
    progress="Looking for the text",
    subject="pattern",
    empty_hint=(
        "No line matches. Try a shorter part with ignore_case, fixed if it is no regular "
        "expression, or leave out `repository` and filters."
    ),
)

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
            "lines": {
                "type": "string",
                "maxLength": MAX_RANGES_TEXT,
                "description": "Ranges; '90-' is to the end.",
            },
        },
        "repository",
        "path",
    ),
    function=read_output,
    title="Read lines of a file",
    output_schema=schemas.READ,
    compact=compact.compact_read,
    compact_schema=schemas.COMPACT_READ,
    quoted=quoted_read,
    progress="Reading",
    subject="path",
    empty_hint="The file has no lines.",
    result_words=("part", "parts"),
)

LIST_FILES = Tool(
    name="ListFiles",
    description=(
        "List ingested files with size and language: those that match a glob (path "
        "'tests/*_api.py'), or the tree below a folder to a depth. `skipped`: files left out, with "
        "the reason."
    ),
    parameters=schema(
        {
            "repository": REPOSITORY,
            "path": PATH,
            "language": LANGUAGE,
            "depth": limit(DEFAULT_DEPTH, MAX_DEPTH),
            "skipped": FLAG,
            "limit": limit(DEFAULT_FILES, MAX_FILES),
            "cursor": CURSOR,
            "offset": OFFSET,
        }
    ),
    function=list_output,
    title="List the files",
    output_schema=schemas.LIST,
    compact=compact.compact_list,
    compact_schema=schemas.COMPACT_LIST,
    quoted=compact.compact_list,
    progress="Listing the files",
    subject="path",
    empty_hint="No file is there. Leave out `path` and `language` to see which there are.",
    result_words=("entry", "entries"),
)

TEXT_TOOLS = (GREP, READ_FILE, LIST_FILES)
