"""Addresses of this app."""

from django.urls import path

from apps.core.rights import for_users
from apps.lmstudio import api, views

urlpatterns = [
    # Another address than the one in use is asked with POST.
    *for_users([path("lmstudio/status", api.status)], methods=("GET", "HEAD")),
    *for_users([path("lmstudio", views.page, name="lmstudio")]),
    *for_users([path("ui/lmstudio/models", views.models)]),
    path("ui/lmstudio/check", views.check),
    path("ui/lmstudio/reset", views.reset),
]
