"""A restricted `/mcp` for the threads of Codex: `/mcp?tool=VectorSearch&repository=acme`.

The query string names the tools, of those that only read, and the repositories that they search;
`area=acme%09src/` limits them to paths of a repository.
It never grants more than `/mcp`, and offers only tools: resources and prompts know no filter.
"""

from dataclasses import replace

from django.http import QueryDict

from apps.agents.tools import toolset
from apps.mcp.search import INSTRUCTIONS, mcp_tool
from apps.mcp.types import McpEndpoint
from apps.retrieval.query import read_area


def narrowed(endpoint: McpEndpoint, query: QueryDict) -> McpEndpoint:
    """Restrict an endpoint to a query string; unchanged without `tool` and `repository`."""
    names, repositories = tuple(query.getlist("tool")), tuple(query.getlist("repository"))
    areas = tuple(map(read_area, query.getlist("area")))
    if not names and not repositories and not areas:
        return endpoint
    tools = tuple(
        replace(mcp_tool(tool), links=None) for tool in toolset(repositories, names or None, areas)
    )
    return replace(
        endpoint,
        instructions=INSTRUCTIONS,
        registry=lambda: tools,
        tool_errors_as_results=True,
        resources=None,
        prompts=(),
    )
