"""URLs of search, symbols and the code browser."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from apps.browse import code_views, views
from apps.core.security.rights import for_users
from apps.tools import api


class Anything(StringConverter):
    """The rest of a path, which may hold slashes and line breaks: file names do."""

    regex = r"[\s\S]+"


register_converter(Anything, "anything")

api_and_pages = [
    path("tools/vector-search", api.VectorSearchView.as_view(), name="vector-search"),
    path("tools/ingested-repos", api.IngestedReposView.as_view(), name="ingested-repos"),
    path(
        "tools/symbol-definitions",
        api.SymbolDefinitionsView.as_view(),
        name="symbol-definitions",
    ),
    path(
        "tools/symbol-references",
        api.SymbolReferencesView.as_view(),
        name="symbol-references",
    ),
    path("tools/find-callers", api.FindCallersView.as_view(), name="find-callers"),
    path("tools/find-imports", api.FindImportsView.as_view(), name="find-imports"),
    path("tools/file-outline", api.FileOutlineView.as_view(), name="file-outline"),
    path("tools/grep", api.GrepView.as_view(), name="grep"),
    path("tools/read-file", api.ReadFileView.as_view(), name="read-file"),
    path("tools/list-files", api.ListFilesView.as_view(), name="list-files"),
    path("tools/context", api.ContextView.as_view(), name="context"),
    path("tools/related-code", api.RelatedCodeView.as_view(), name="related-code"),
    path("search", views.search_page, name="search"),
    path("code", code_views.code, name="code"),
    path("code/<anything:where>", code_views.code, name="code-place"),
    path("ui/code/lines", code_views.lines),
    path("ui/code/tree", code_views.tree),
    path("ui/code/name", code_views.name),
    path("ui/retrieval/source", code_views.source, name="source"),
]
urlpatterns = for_users(api_and_pages)
websocket_urlpatterns: list[object] = []
