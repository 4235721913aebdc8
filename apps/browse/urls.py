"""URLs of the search page and the code browser."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from apps.browse import code_views, views
from apps.core.security.rights import for_users


class Anything(StringConverter):
    """The rest of a path, which may hold slashes and line breaks: file names do."""

    regex = r"[\s\S]+"


register_converter(Anything, "anything")

page_urlpatterns = [
    path("search", views.search_page, name="search"),
    path("code", code_views.code, name="code"),
    path("code/<anything:where>", code_views.code, name="code-place"),
    path("ui/code/changed", code_views.changed),
    path("ui/code/commits", code_views.commits),
    path("ui/code/facts", code_views.facts),
    path("ui/code/imports", code_views.imports),
    path("ui/code/lines", code_views.lines),
    path("ui/code/tree", code_views.tree),
    path("ui/code/name", code_views.name),
    path("ui/retrieval/source", code_views.source, name="source"),
]
urlpatterns = for_users(page_urlpatterns)
