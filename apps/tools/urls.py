"""URLs of the tools: `/tools/*` (docs/api.md)."""

from django.urls import path

from apps.core.security.rights import for_users
from apps.tools import api

api_urlpatterns = [
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
]
urlpatterns = for_users(api_urlpatterns)
