"""A restricted `/mcp` for the threads of Codex: `/mcp?tool=VectorSearch&repository=acme`.

The query string names the tools, of those that only read, and the repositories that they search;
`area=acme%09src/` limits them to paths of a repository, `area=%09*.md` to those of any. With
`full=1`, the rows of each result are in `_meta` in the full form, which the chat shows.
It never grants more than `/mcp`, and offers only tools: resources and prompts know no filter.
"""

from dataclasses import replace
from functools import partial

from django.http import QueryDict

from apps.agents.tools import toolset
from apps.mcp.search import instructions, mcp_tool
from apps.mcp.types import McpEndpoint
from apps.retrieval.query import MAX_IDS, parse_repositories, read_areas, refuse, repositories_of


def narrowed(endpoint: McpEndpoint, query: QueryDict) -> McpEndpoint:
    """Restrict an endpoint to a query string; unchanged without the parameters above.

    Raises InvalidInput; its details.details lists all problems.
    """
    names, problems = query.getlist("tool"), list[str]()
    if len(names) > MAX_IDS:
        problems.append(f"at most {MAX_IDS} tools can be named")
    repositories = parse_repositories(query.getlist("repository"), problems)
    refuse(problems)
    areas = read_areas(query.getlist("area"))
    has_full = query.get("full") == "1"
    if not (names or repositories or areas or has_full):
        return endpoint
    allowed = toolset(repositories, tuple(names) or None, areas)
    of_areas = repositories_of(areas)
    common = [one for one in repositories or of_areas if not of_areas or one in of_areas]
    convert = partial(mcp_tool, allowed=common, has_full=has_full)
    tools = tuple(replace(convert(tool), links=None) for tool in allowed)
    return replace(
        endpoint,
        instructions=instructions({tool.name for tool in tools}),
        registry=lambda: tools,
        tool_errors_as_results=True,
        resources=None,
        prompts=(),
    )
