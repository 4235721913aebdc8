"""The product's addresses, with the conformance suite's tools, resources and prompts."""

from dataclasses import replace

from django.urls import path
from django.urls.resolvers import URLPattern

from apps.core.security.rights import for_users
from apps.mcp.agents import AGENTS
from apps.mcp.chat import CHAT
from apps.mcp.narrowing import narrowed
from apps.mcp.rpc import serve
from apps.mcp.search import SEARCH
from apps.mcp.types import McpEndpoint
from codeinfo import urls
from codeinfo.urls import handler400, handler403, handler404, handler500
from tests.mcp.suite_context import with_suite_context
from tests.mcp.suite_tools import TOOLS

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]


def with_suite(endpoint: McpEndpoint) -> McpEndpoint:
    tools = replace(endpoint, registry=lambda: (*endpoint.registry(), *TOOLS))
    return with_suite_context(tools)


endpoints: list[URLPattern] = [
    path("mcp", serve(with_suite(SEARCH), narrowed)),
    path("mcp/chat", serve(with_suite(CHAT))),
    path("mcp/agents", serve(with_suite(AGENTS))),
]
urlpatterns = [*for_users(endpoints), *urls.urlpatterns]
