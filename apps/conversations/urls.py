"""Addresses of this app: the API, the pages, and the websockets of both."""

from collections.abc import Callable, Coroutine
from typing import Any

from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.urls import path, re_path
from django.urls.resolvers import URLPattern

from apps.conversations import api, chat_api
from apps.conversations.consumers.json import JsonConsumer

View = Callable[[HttpRequest], Coroutine[Any, Any, HttpResponseBase]]


def by_method(**views: View) -> View:
    """One address for several views: `GET /chat` is a page, `POST /chat` the API."""

    async def door(request: HttpRequest) -> HttpResponseBase:
        view = views.get("GET" if request.method == "HEAD" else str(request.method))
        if view is None:
            return HttpResponseNotAllowed(views)
        return await view(request)

    return door


# Bulk before `<conversation>`: no conversation has the id "bulk".
api_urlpatterns: list[URLPattern] = [
    path("chat", by_method(POST=chat_api.chat)),
    path("chat/providers", chat_api.providers),
    path("chat/models", chat_api.models),
    path("conversations", api.Conversations.as_view()),
    path("conversations/bulk/<str:verb>", api.Bulk.as_view()),
    path("conversations/<str:conversation_id>/archive", api.Archive.as_view()),
    path("conversations/<str:conversation_id>/restore", api.Restore.as_view()),
    path("conversations/<str:conversation_id>/turns", api.Turns.as_view()),
    path("conversations/<str:conversation_id>/cancel", chat_api.cancel),
]
page_urlpatterns: list[URLPattern] = []

urlpatterns = [*page_urlpatterns, *api_urlpatterns]

websocket_urlpatterns: list[URLPattern] = [
    re_path(r"^ws$", JsonConsumer.as_asgi()),
]
