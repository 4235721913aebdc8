"""Routes of the Logs page and API."""

from django.urls import path

from apps.core.security.rights import for_users
from apps.logs import api, views

# Every user's pages and programs may report errors; only staff may read them.
urlpatterns = [
    *for_users([path("logs", views.logs, name="logs")], methods=("POST",)),
    *for_users([path("ui/logs/entries", views.receive_page_entries)]),
    path("logs/stream", api.stream_entries),
    path("ui/logs/list", views.listing),
    path("ui/logs/chart", views.over_time),
    path("ui/logs/stream", views.live),
    path("ui/logs/sample", views.sample),
]
