"""The tools that a model may call to read the index. The chat and MCP offer the same tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from apps.core.types import JSON
from apps.index.types import Area
from apps.retrieval.paging import PAGE, Pager
from apps.retrieval.query import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    MAX_QUERY,
    SearchQuery,
    areas_of,
    repositories_of,
)
from apps.retrieval.repositories import list_repositories, with_ids
from apps.retrieval.scope import with_hint
from apps.retrieval.search import search
from apps.tools import compact
from apps.tools.call_tools import CALL_TOOLS
from apps.tools.context_tools import CONTEXT_TOOLS
from apps.tools.output_schemas import MATCHES, REPOSITORIES
from apps.tools.quoted import quoted_matches, quoted_repositories
from apps.tools.snippets import cut, parse_snippet_lines
from apps.tools.symbol_tools import SYMBOL_TOOLS
from apps.tools.text_tools import TEXT_TOOLS
from apps.tools.tool import (
    CURSOR,
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


@dataclass(frozen=True)
class _Repositories:
    """Which repositories ListIngestedRepositories lists."""

    only: tuple[str, ...]  # empty: all
    cursor: Any


def _list_repositories(arguments: Mapping[str, Any]) -> JSON:
    # Models cannot choose: where only some may be seen, the toolset names them.
    only = with_ids(map(Area, arguments.get("repository") or ()))
    query = _Repositories(repositories_of(only), arguments.get("cursor"))
    payload = list_repositories(areas_of(arguments))
    repos = [each for each in payload["repos"] if not query.only or each["id"] in query.only]
    pager = Pager.of("ListIngestedRepositories", query)
    shown, page = pager.page(repos, len(repos), itemgetter("id"), narrow="")
    log_call("ListIngestedRepositories", results=len(shown))
    return payload | {"repos": shown, PAGE: page}


VECTOR_SEARCH = Tool(
    name="VectorSearch",
    description=(
        "Search the ingested source repositories by meaning and words: the passages that "
        "match best, with path and text. One thing at a "
        "time, in words or identifiers of the code: 'retry with backoff after HTTP "
        "429', 'class ConnectionPool'. Not for an exact name or text: use FindDefinitions or Grep. "
        "`score` is a "
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
    quoted=quoted_matches,
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
        "`repository`), description, folder, last ingest and number of files. Use it to learn what "
        "there is, or which repository a question means."
    ),
    parameters=schema({"cursor": CURSOR}),
    function=_list_repositories,
    title="List the ingested repositories",
    output_schema=REPOSITORIES,
    compact=compact.compact_repositories,
    compact_schema=compact.REPOSITORIES,
    quoted=quoted_repositories,
    progress="Looking up which repositories there are",
)

TOOLS: tuple[Tool, ...] = (
    *(LIST_REPOSITORIES, VECTOR_SEARCH),
    *SYMBOL_TOOLS,
    *CALL_TOOLS,
    *TEXT_TOOLS,
    *CONTEXT_TOOLS,
)
