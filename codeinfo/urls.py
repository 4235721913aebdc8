"""Every HTTP address: each app brings its own."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("apps.site.urls")),
    path("", include("apps.ingest.urls")),
    path("", include("apps.retrieval.urls")),
    path("", include("apps.conversations.urls")),
]

handler404 = "apps.site.views.not_found"
handler500 = "apps.site.views.server_error"
