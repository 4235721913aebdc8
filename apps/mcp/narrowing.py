"""A restricted `/mcp` for the threads of Codex: `/mcp?tool=VectorSearch&repository=acme`.

The query string names the tools, of those that only read, and the repositories that they search;
`area=acme%09src/` limits them to paths of a repository, `area=%09*.md` to those of any.
It never grants more than `/mcp`, and offers only tools: resources and prompts know no filter.
"""

from dataclasses import replace

from django.http import QueryDict

from apps.agents.tools import toolset
from apps.core.errors import InvalidInput
from apps.mcp.search import instructions, mcp_tool
from apps.mcp.types import McpEndpoint
from apps.retrieval.query import MAX_IDS, parse_repositories, read_areas, repositories_of


def narrowed(endpoint: McpEndpoint, query: QueryDict) -> McpEndpoint:
    """Restrict an endpoint to a query string; unchanged without `tool`, `repository` and `area`.

    Raises InvalidInput; its details.details lists all problems.
    """
    names, problems = query.getlist("tool"), list[str]()
    if len(names) > MAX_IDS:
        problems.append(f"at most {MAX_IDS} tools can be named")
    repositories = parse_repositories(query.getlist("repository"), problems)
    if problems:
        raise InvalidInput(", ".join(problems), details={"details": problems})
    areas = read_areas(query.getlist("area"))
    if not names and not repositories and not areas:
        return endpoint
    allowed = toolset(repositories, tuple(names) or None, areas)
    of_areas = repositories_of(areas)
    common = [one for one in repositories or of_areas if not of_areas or one in of_areas]
    tools = tuple(replace(mcp_tool(tool, common), links=None) for tool in allowed)
    return replace(
        endpoint,
        instructions=instructions({tool.name for tool in tools}),
        registry=lambda: tools,
        tool_errors_as_results=True,
        resources=None,
        prompts=(),
    )
