"""Routes of the LM Studio page and API."""

from django.urls import path

from apps.core.security.rights import for_users
from apps.lmstudio import api, views

urlpatterns = [
    # Only POST may query an address other than the current one.
    *for_users([path("lmstudio/status", api.status)], methods=("GET", "HEAD")),
    *for_users([path("lmstudio", views.page, name="lmstudio")]),
    *for_users([path("ui/lmstudio/models", views.models)]),
    path("ui/lmstudio/check", views.check),
    path("ui/lmstudio/reset", views.reset),
]
