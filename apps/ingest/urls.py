"""URLs of the ingest API, the ingest page with its fragments, and its websocket."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import path, re_path, register_converter
from django.urls.converters import StringConverter
from django.urls.resolvers import URLPattern

from apps.core.security.rights import for_users
from apps.ingest import api, hooks, services, views
from apps.ingest.consumers import IngestPageConsumer


class AbsolutePath(StringConverter):
    """An absolute path, percent-encoded as the rest of the URL.

    The server decodes `%2F` before routing, and some clients and proxies merge the two slashes into
    one. `to_python` restores the leading slash.
    """

    regex = r"(?s:.+)"

    def to_python(self, value: str) -> str:
        return "/" + value.lstrip("/")


register_converter(AbsolutePath, "absolute")


View = Callable[[HttpRequest], HttpResponse]


def confirm_first(dialog: View, act: View) -> View:
    """Return a view that shows a dialog for GET, and acts for POST."""
    return lambda request: (act if request.method == "POST" else dialog)(request)


# All users may see what is ingested. Only staff may change it, and browse folders.
api_urlpatterns: list[URLPattern] = [
    path("ingest/start", api.Start.as_view()),
    path("ingest/cancel/<str:run_id>", api.Cancel.as_view()),
    path("ingest/reembed/<absolute:path>", api.Reembed.as_view()),
    path("ingest/remove/<absolute:path>", api.Remove.as_view()),
    path("ingest/model", api.Model.as_view()),
    path("ingest/dirs", api.Dirs.as_view()),
    path("ingest/bases", api.Bases.as_view()),
    path("ingest/bases/remove", api.RemoveBase.as_view()),
    path("hooks/git/<uuid:key>", hooks.pushed),
    *for_users(
        [
            path("ingest/status/<str:run_id>", api.Status.as_view()),
            path("ingest/runs", api.Runs.as_view()),
            path("ingest/roots", api.Roots.as_view()),
            path("ingest/models", api.Models.as_view()),
        ]
    ),
]
page_urlpatterns: list[URLPattern] = [
    path("ui/ingest/start", views.start),
    path("ui/ingest/allow", views.allow),
    path("ui/ingest/nearby", views.nearby),
    path("ui/ingest/next", views.start_next),
    path("ui/ingest/cancel/<str:run_id>", views.cancel),
    path("ui/ingest/plain/<str:run_id>", views.repeat, {"start": services.start_as_plain_folder}),
    path("ui/ingest/repeat/<str:run_id>", views.repeat, {"start": services.start_again}),
    path("ui/ingest/force/<str:run_id>", views.repeat, {"start": services.start_with_force}),
    path("ui/ingest/reembed", views.reembed),
    path("ui/ingest/ref", views.start_ref),
    path("ui/ingest/watch/<str:root_id>", views.watch),
    path("ui/ingest/again", views.ingest_again),
    path("ui/ingest/remove", confirm_first(views.confirm_remove, views.remove)),
    path("ui/ingest/models", views.models),
    path("ui/ingest/model", confirm_first(views.ask_model, views.change_model)),
    path("ui/ingest/folders", views.folder_picker),
    *for_users(
        [
            path("ingest", views.page, name="ingest"),
            path("ui/ingest/parts", views.living_parts),
            path("ui/ingest/root/<str:root_id>", views.details),
            path("ui/ingest/skipped", views.skipped),
            path("ui/ingest/skipped.csv", views.skipped_csv),
        ]
    ),
]
urlpatterns = [*api_urlpatterns, *page_urlpatterns]

websocket_urlpatterns: list[URLPattern] = [
    re_path(r"^ws/ui/ingest$", IngestPageConsumer.as_asgi()),
]
