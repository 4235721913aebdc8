"""RelatedCode: passages like some lines of a file."""

from collections.abc import Mapping
from typing import Any

from apps.core.types import JSON
from apps.lookup.related_code import RelatedQuery, related_code
from apps.retrieval.query import DEFAULT_LIMIT, MAX_LIMIT
from apps.retrieval.scope import with_hint
from apps.tools.errors import NO_FILE, NO_LINES, OF_SEARCHES, TEXT_LOST
from apps.tools.tool import (
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
from apps.tools.vector_search import COMPACT_MATCHES, MATCHES, compact_matches, quoted_matches

_LINE: JSON = {"type": "integer", "minimum": 1}


def _output(arguments: Mapping[str, Any]) -> JSON:
    query = RelatedQuery.parse(arguments)
    output = related_code(query)
    log_call("RelatedCode", **query.as_log(), results=len(output["results"]))
    return with_hint(output, query.repositories, query.filters)


RELATED_CODE = Tool(
    name="RelatedCode",
    description=(
        "Find passages like some lines of a file: copies, similar implementations. "
        "Example: path 'src/app.py', start_line 40, end_line 60. Not for "
        "uses of a name: use FindReferences. " + QUOTED
    ),
    parameters=schema(
        {
            "repository": REPOSITORY_ID,
            "path": FILE_PATH,
            "start_line": _LINE,
            "end_line": _LINE,
            "within": REPOSITORY,
            "within_path": PATH,
            "language": LANGUAGE,
            "limit": limit(DEFAULT_LIMIT, MAX_LIMIT),
        },
        "repository",
        "path",
        "start_line",
    ),
    function=_output,
    title="Find code like these lines",
    need="code like some lines",
    output_schema=MATCHES,
    compact=compact_matches,
    compact_schema=COMPACT_MATCHES,
    quoted=quoted_matches,
    route="related-code",
    errors=(*OF_SEARCHES, NO_FILE, NO_LINES, TEXT_LOST),
    progress="Looking for code like",
    subject="path",
    scopes=("repository", "within"),
    empty_hint="Nothing is like these lines. Choose the lines of a whole function.",
    result_words=("passage", "passages"),
)
