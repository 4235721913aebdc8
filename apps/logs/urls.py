"""Addresses of this app."""

from django.urls import path

from apps.logs import api, views

urlpatterns = [
    path("logs", views.logs, name="logs"),
    path("logs/stream", api.follow),
    path("ui/logs/list", views.listing),
    path("ui/logs/stream", views.live),
    path("ui/logs/entries", views.forwarded),
    path("ui/logs/sample", views.sample),
]
