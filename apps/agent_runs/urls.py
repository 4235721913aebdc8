"""Addresses of the agents: the API, and the page that shares `/agents` with it."""

from django.urls import path
from django.urls.resolvers import URLPattern

from apps.agent_runs import api, views
from apps.core.security.rights import for_users

api_urlpatterns: list[URLPattern] = [
    path("agents", views.agents_view),
    path("agents/<str:agent>/commands", api.command_list),
    path("agents/<str:agent>/commands/run", api.run_command),
    path("agents/<str:agent>/run", api.run),
]
page_urlpatterns: list[URLPattern] = [
    path("ui/agents/send", views.send),
    path("ui/agents/execute", views.execute),
    path("ui/agents/picker", views.picker_fragment),
]

urlpatterns = [*for_users(page_urlpatterns), *for_users(api_urlpatterns)]
