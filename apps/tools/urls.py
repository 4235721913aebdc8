"""URLs of the tools: `/tools/*` (docs/api.md)."""

from django.urls import path

from apps.core.security.rights import for_users
from apps.tools import api
from apps.tools.tools import TOOLS

api_urlpatterns = [
    path("tools/ingested-repos", api.IngestedReposView.as_view(), name="ingested-repos"),
    *(
        path(f"tools/{tool.route}", api.view_of(tool), name=tool.route)
        for tool in TOOLS
        if tool.route
    ),
]
urlpatterns = for_users(api_urlpatterns)
