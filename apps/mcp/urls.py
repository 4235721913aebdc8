"""Routes of the endpoints. The last two are also served on separate ports (codeinfo/asgi.py)."""

from django.urls import path
from django.urls.resolvers import URLPattern

from apps.core.security.rights import for_users
from apps.mcp.agents import AGENTS
from apps.mcp.chat import CHAT
from apps.mcp.narrowing import narrowed
from apps.mcp.rpc import serve
from apps.mcp.search import SEARCH

endpoints: list[URLPattern] = [
    path("mcp", serve(SEARCH, narrowed)),
    path("mcp/chat", serve(CHAT)),
    path("mcp/agents", serve(AGENTS)),
]
urlpatterns = for_users(endpoints)
