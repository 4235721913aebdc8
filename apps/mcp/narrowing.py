"""A narrower `/mcp`, for the threads of our own Codex: `/mcp?tool=VectorSearch&repository=acme`.

The address says which tools there are, of those that only read, and which repositories they look
into. It gives nobody more than `/mcp` does.
"""

from dataclasses import replace

from django.http import QueryDict

from apps.agents.tools import toolset
from apps.mcp.search import adapted
from apps.mcp.types import McpEndpoint


def narrowed(endpoint: McpEndpoint, query: QueryDict) -> McpEndpoint:
    """The endpoint as the address asks for it; without `tool` and `repository` as it is."""
    names, repositories = tuple(query.getlist("tool")), tuple(query.getlist("repository"))
    if not names and not repositories:
        return endpoint
    tools = tuple(map(adapted, toolset(repositories, names or None)))
    return replace(endpoint, registry=lambda: tools, tool_errors_as_results=True)
