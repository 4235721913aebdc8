"""Addresses of this app."""

from django.urls import path

from apps.core.rights import for_users
from apps.logs import api, views

# Every page reports its own errors, and programs theirs; staff alone reads them.
urlpatterns = [
    *for_users([path("logs", views.logs, name="logs")], methods=("POST",)),
    *for_users([path("ui/logs/entries", views.forwarded)]),
    path("logs/stream", api.follow),
    path("ui/logs/list", views.listing),
    path("ui/logs/stream", views.live),
    path("ui/logs/sample", views.sample),
]
