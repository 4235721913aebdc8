"""The tools that gather code: everything for one question, and passages like some lines."""

from collections.abc import Mapping
from typing import Any

from apps.core.types import JSON
from apps.lookup.related_code import RelatedQuery, related_code
from apps.retrieval.query import DEFAULT_LIMIT, MAX_LIMIT, MAX_QUERY
from apps.retrieval.scope import with_hint
from apps.tools import compact
from apps.tools.context import ContextQuery, build_context
from apps.tools.context.types import DEFAULT_TOKENS, MAX_TOKENS, MIN_TOKENS
from apps.tools.context_form import CONTEXT as COMPACT_CONTEXT
from apps.tools.context_form import compact_context
from apps.tools.output_schemas import CONTEXT, MATCHES
from apps.tools.quoted import quoted_context, quoted_matches
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


def context_output(arguments: Mapping[str, Any]) -> JSON:
    """The output of Context. Raises InvalidInput, and as `build_context`."""
    query = ContextQuery.parse(arguments)
    answer = build_context(query)
    log_call("Context", **query.as_log(), results=len(answer.pieces))
    return with_hint(answer.as_wire(), query.repositories, query.filters)


def related_output(arguments: Mapping[str, Any]) -> JSON:
    """The output of RelatedCode. Raises InvalidInput, and as `related_code`."""
    query = RelatedQuery.parse(arguments)
    output = related_code(query)
    log_call("RelatedCode", **query.as_log(), results=len(output["results"]))
    return with_hint(output, query.repositories, query.filters)


LINE: JSON = {"type": "integer", "minimum": 1}

CONTEXT_TOOL = Tool(
    name="Context",
    description=(
        "Start here with a question about the code: the passages that answer it, definitions they "
        "use, callers, tests, and a line of each further file, in `max_tokens`. Example: 'How is "
        "a failed upload retried?'. Not for a known name: use FindDefinitions. " + QUOTED
    ),
    parameters=schema(
        {
            "question": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY},
            "max_tokens": {
                "type": "integer",
                "minimum": MIN_TOKENS,
                "maximum": MAX_TOKENS,
                "default": DEFAULT_TOKENS,
            },
            "repository": REPOSITORY,
            "path": PATH,
            "language": LANGUAGE,
        },
        "question",
    ),
    function=context_output,
    title="Gather what answers a question",
    output_schema=CONTEXT,
    compact=compact_context,
    compact_schema=COMPACT_CONTEXT,
    quoted=quoted_context,
    progress="Gathering what answers",
    subject="question",
    empty_hint=(
        "Nothing came close. Ask again with names and words that the code itself would use; leave "
        "out `repository` and filters."
    ),
    result_words=("passage", "passages"),
)

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
            "start_line": LINE,
            "end_line": LINE,
            "within": REPOSITORY,
            "within_path": PATH,
            "language": LANGUAGE,
            "limit": limit(DEFAULT_LIMIT, MAX_LIMIT),
        },
        "repository",
        "path",
        "start_line",
    ),
    function=related_output,
    title="Find code like these lines",
    output_schema=MATCHES,
    compact=compact.compact_matches,
    compact_schema=compact.MATCHES,
    quoted=quoted_matches,
    progress="Looking for code like",
    subject="path",
    scopes=("repository", "within"),
    empty_hint="Nothing is like these lines. Choose the lines of a whole function.",
    result_words=("passage", "passages"),
)

CONTEXT_TOOLS = (CONTEXT_TOOL, RELATED_CODE)
