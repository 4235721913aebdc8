"""The root URLconf. It includes the URLs of the apps."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    # First, as Django compares routes in order, and searches should be fast.
    path("", include("apps.tools.urls")),
    path("", include("apps.browse.urls")),
    path("admin/", admin.site.urls),
    path("", include("apps.site.urls")),
    path("", include("apps.logs.urls")),
    path("", include("apps.lmstudio.urls")),
    path("", include("apps.agents.urls")),
    path("", include("apps.ingest.urls")),
    path("", include("apps.conversations.urls")),
    path("", include("apps.agent_runs.urls")),
    path("", include("apps.mcp.urls")),
]

handler400 = "apps.site.failures.bad_request"
handler403 = "apps.site.failures.forbidden"
handler404 = "apps.site.failures.not_found"
handler500 = "apps.site.failures.server_error"
