"""Addresses of this app: the API, the pages, and the websockets of both."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.urls import path, re_path
from django.urls.resolvers import URLPattern

from apps.conversations import (
    api,
    chat_api,
    codex_page,
    presets,
    ratings,
    scope,
    share_views,
    tagging,
    views,
)
from apps.conversations.consumers.html import ChatPageConsumer
from apps.conversations.consumers.json import JsonConsumer
from apps.core.security.rights import for_users

View = Callable[[HttpRequest], Coroutine[Any, Any, HttpResponseBase]]


def by_method(**views: View) -> View:
    """One address for several views: `GET /chat` is a page, `POST /chat` the API."""

    @wraps(views["GET"], updated=())
    async def door(request: HttpRequest) -> HttpResponseBase:
        view = views.get("GET" if request.method == "HEAD" else str(request.method))
        if view is None:
            return HttpResponseNotAllowed(views)
        return await view(request)

    return door


# Bulk before `<conversation>`: no conversation has the id "bulk".
api_urlpatterns: list[URLPattern] = [
    path("chat", by_method(GET=views.page, POST=chat_api.chat)),
    path("chat/providers", chat_api.providers),
    path("chat/models", chat_api.models),
    path("conversations", api.Conversations.as_view()),
    path("conversations/bulk/<str:verb>", api.Bulk.as_view()),
    path("conversations/<str:conversation_id>/archive", api.Archive.as_view()),
    path("conversations/<str:conversation_id>/restore", api.Archive.as_view(archived=False)),
    path("conversations/<str:conversation_id>/turns", api.Turns.as_view()),
    path("conversations/<str:conversation_id>/turns/<str:turn_id>/rating", api.Rating.as_view()),
    path("conversations/<str:conversation_id>/tags", api.Tags.as_view()),
    path("conversations/<str:conversation_id>/events", chat_api.events),
    path("conversations/<str:conversation_id>/cancel", chat_api.cancel),
]
page_urlpatterns: list[URLPattern] = [
    path("ui/chat/send", views.send),
    path("ui/chat/branch", views.branch),
    path("ui/chat/ask", views.ask),
    path("ui/chat/questions", views.questions),
    path("ui/chat/stop", views.stop),
    path("ui/chat/picker", views.picker_fragment),
    path("ui/chat/scope", scope.options),
    path("ui/chat/sidebar", views.sidebar_fragment),
    path("ui/chat/actions", views.actions),
    path("ui/chat/archive", views.archive, {"archived": True}),
    path("ui/chat/restore", views.archive, {"archived": False}),
    path("ui/chat/pin", views.pin),
    path("ui/chat/rename", views.rename),
    path("ui/chat/delete", views.delete),
    path("ui/chat/rate", ratings.form),
    path("ui/chat/tags", tagging.dialog),
    path("ui/chat/tag", tagging.form),
    path("ui/chat/presets", presets.options),
    path("ui/chat/presets/edit", presets.dialog),
    path("ui/chat/presets/save", presets.save_form),
    path("ui/chat/presets/delete", presets.delete_form),
    # Before the other verbs: it has an argument.
    path("ui/chat/bulk/tag", tagging.bulk),
    path("ui/chat/bulk/<str:verb>", views.bulk),
    path("ui/chat/diagram", views.diagram),
    path("ui/chat/standing", views.standing),
    path("ui/chat/export", views.export),
    path("ui/chat/shares", share_views.dialog),
    path("ui/chat/share", share_views.share),
    path("ui/chat/revoke", share_views.revoke),
    path("shared/<str:token>", share_views.shared),
]

codex_urlpatterns: list[URLPattern] = [
    path("ui/chat/codex", codex_page.panel),
    path("ui/chat/codex/login", codex_page.login),
    path("ui/chat/codex/cancel", codex_page.cancel),
]

urlpatterns = [
    *for_users(page_urlpatterns),
    *for_users(api_urlpatterns),
    *codex_urlpatterns,
]

websocket_urlpatterns: list[URLPattern] = [
    re_path(r"^ws$", JsonConsumer.as_asgi()),
    re_path(
        r"^ws/ui/chat/(?P<conversation_id>[A-Za-z0-9._:-]{1,128})$", ChatPageConsumer.as_asgi()
    ),
]
