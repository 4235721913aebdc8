"""Addresses of this app."""

from django.urls import path

from apps.retrieval import api, views

urlpatterns = [
    path("tools/vector-search", api.VectorSearchView.as_view(), name="vector-search"),
    path("tools/ingested-repos", api.IngestedReposView.as_view(), name="ingested-repos"),
    path("search", views.search_page, name="search"),
    path("ui/retrieval/source", views.source, name="source"),
]
websocket_urlpatterns: list[object] = []
