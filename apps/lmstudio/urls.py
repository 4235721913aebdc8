"""Addresses of this app."""

from django.urls import path

from apps.lmstudio import api, views

urlpatterns = [
    path("lmstudio/status", api.status),
    path("lmstudio", views.page, name="lmstudio"),
    path("ui/lmstudio/check", views.check),
    path("ui/lmstudio/reset", views.reset),
    path("ui/lmstudio/models", views.models),
]
