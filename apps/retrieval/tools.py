"""The tools that a model may call to read the index. The chat and MCP offer the same tools."""

from collections.abc import Mapping
from typing import Any

from apps.core.types import JSON
from apps.retrieval import compact
from apps.retrieval.call_tools import CALL_TOOLS
from apps.retrieval.context_tools import CONTEXT_TOOLS
from apps.retrieval.output_schemas import MATCHES, REPOSITORIES
from apps.retrieval.query import DEFAULT_LIMIT, MAX_LIMIT, MAX_QUERY, SearchQuery, areas_of
from apps.retrieval.repositories import list_repositories
from apps.retrieval.scope import with_hint
from apps.retrieval.search import search
from apps.retrieval.snippets import cut, parse_snippet_lines
from apps.retrieval.symbol_tools import SYMBOL_TOOLS
from apps.retrieval.text_tools import TEXT_TOOLS
from apps.retrieval.tool import (
    LANGUAGE,
    PATH,
    QUOTED,
    REPOSITORY,
    Tool,
    limit,
    log_call,
    schema,
)

__all__ = ["LIST_REPOSITORIES", "TOOLS", "VECTOR_SEARCH", "Tool"]


def _vector_search(arguments: Mapping[str, Any]) -> JSON:
    query, snippet_lines = SearchQuery.parse(arguments), parse_snippet_lines(arguments)
    result = search(query)
    log_call("VectorSearch", **query.as_log(), results=len(result.matches), modelId=result.model_id)
    output = with_hint(result.as_wire(), query.repositories, query.filters)
    return cut(output, query.text, snippet_lines)


def _list_repositories(arguments: Mapping[str, Any]) -> JSON:
    payload = list_repositories(areas_of(arguments))
    log_call("ListIngestedRepositories", results=len(payload["repos"]))
    return payload


VECTOR_SEARCH = Tool(
    name="VectorSearch",
    description=(
        "Search the ingested source repositories by meaning and by words and get the passages that "
        "match best, with path, lines and text. Use it for one thing at a "
        "time, in words or identifiers that the code would use: 'retry with backoff after HTTP "
        "429', 'class ConnectionPool'; again with other words if the passages do not answer. Not "
        "for an exact name or text: use FindDefinitions, FindReferences or Grep. `score` is a "
        "distance: above about 1.4 unrelated. With `weak: true` nothing fits. " + QUOTED
    ),
    parameters=schema(
        {
            "query": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_QUERY,
                "description": "A sentence, a symbol or a few keywords.",
            },
            "repository": REPOSITORY,
            "path": PATH,
            "language": LANGUAGE,
            "limit": limit(DEFAULT_LIMIT, MAX_LIMIT),
        },
        "query",
    ),
    function=_vector_search,
    title="Search the ingested repositories",
    output_schema=MATCHES,
    has_passages=True,
    compact=compact.compact_matches,
    compact_schema=compact.MATCHES,
    progress="Searching for",
    subject="query",
    empty_hint=(
        "Nothing came close. Search again with names and words that the code itself would use, one "
        "thing at a time; leave out `repository` and filters, or call ListIngestedRepositories to "
        "see whether the right repository is ingested."
    ),
)

LIST_REPOSITORIES = Tool(
    name="ListIngestedRepositories",
    description=(
        "List the source repositories that can be searched, with `id` (what other tools take as "
        "`repository`), description, folder, time of the last ingest and number of files. Use it "
        "to learn what there is, or which repository a question means."
    ),
    parameters=schema({}),
    function=_list_repositories,
    title="List the ingested repositories",
    output_schema=REPOSITORIES,
    compact=compact.compact_repositories,
    compact_schema=compact.REPOSITORIES,
    progress="Looking up which repositories there are",
)

TOOLS: tuple[Tool, ...] = (
    *(LIST_REPOSITORIES, VECTOR_SEARCH),
    *SYMBOL_TOOLS,
    *CALL_TOOLS,
    *TEXT_TOOLS,
    *CONTEXT_TOOLS,
)
