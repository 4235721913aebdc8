"""What a conversation is limited to: repositories and paths, and their completion in the composer.

A conversation keeps its areas in `flags["scope"]`, each as one text (`write_area`). The page sends
them with every question, so that a question is limited as its own tab shows.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from django.db.models import Case, IntegerField, Value, When
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_GET

from apps.core.errors import InvalidInput
from apps.index import globs, queries
from apps.index.models import Root, SourceFile
from apps.index.types import Area
from apps.retrieval.overlaps import repeated_files
from apps.retrieval.query import (
    MAX_AREAS,
    listed,
    read_area,
    read_areas,
    write_area,
)
from apps.retrieval.repositories import is_named, repo_id

SCOPE = "scope"
MAX_REPOSITORIES, MAX_FOLDERS, MAX_FILES = 6, 3, 6
# Characters of what is typed, of which a database makes an expression.
MAX_TYPED = 400
# Paths that are compared; folders are found in them.
MAX_COMPARED = 200


class Chip(NamedTuple):
    """An area as the page shows it. kind: `repo`, `folder` or `file`, the name of its icon."""

    value: str
    label: str
    kind: str


def chip(area: Area) -> Chip:
    is_file = bool(area.path) and not area.path.endswith(("/", "*"))
    kind = "file" if is_file else "folder" if area.path else "repo"
    return Chip(write_area(area), listed([area]), kind)


def chips(areas: Sequence[Area]) -> list[Chip]:
    return [chip(area) for area in areas]


def stored(flags: Mapping[str, Any]) -> tuple[Area, ...]:
    """The areas of a conversation."""
    texts = flags.get(SCOPE)
    known = texts if isinstance(texts, list) else []
    return tuple(_readable(text for text in known if isinstance(text, str) and text))


def initial(query: QueryDict) -> tuple[Area, ...]:
    """The areas of a new conversation: `/chat?repo=<id>`, which may repeat, and `scope=`."""
    names = [*query.getlist("repo"), *query.getlist("repository")]
    return tuple(_readable([*names, *query.getlist(SCOPE)]))


def posted(form: QueryDict) -> tuple[Area, ...]:
    """The areas of a form. Raises InvalidInput."""
    return read_areas([text for text in form.getlist(SCOPE) if text])


def _readable(texts: Any) -> Iterator[Area]:
    for text in islice(dict.fromkeys(texts), MAX_AREAS):
        try:
            yield read_area(text)
        except InvalidInput:
            continue


@require_GET
def options(request: HttpRequest) -> HttpResponse:
    """`GET /ui/chat/scope?at=&scope=`: what `@…` in the composer may stand for, as a listbox."""
    chosen = initial(request.GET)
    suggested = chips(suggestions(request.GET.get("at", ""), chosen))
    return render(request, "conversations/_scope_options.html", {"options": suggested})


def suggestions(text: str, chosen: Sequence[Area]) -> list[Area]:
    """Areas for what was typed: repositories, then the glob itself, folders and files. Bounded."""
    if "\0" in text or len(text) > MAX_TYPED:
        return []
    roots = sorted(queries.published_roots(), key=repo_id)
    areas = list(islice(_repositories(text, roots), MAX_REPOSITORIES))
    first, slash, rest = text.partition("/")
    named = [root for root in roots if slash and is_named(root, first)]
    if named:
        roots, text = named, rest
    elif chosen:
        names = {area.repository for area in chosen}
        # The files of what is chosen already come first.
        roots = [root for root in roots if repo_id(root) in names] or roots
    if globs.has_wildcards(text):
        areas += _globs(text, roots, is_named=bool(named))
    elif text or named:
        areas += _paths(text, roots)
    return [area for area in dict.fromkeys(areas) if area not in chosen]


def _repositories(text: str, roots: Sequence[Root]) -> Iterator[Area]:
    names = [name for name in map(repo_id, roots) if text.lower() in name.lower()]
    names.sort(key=lambda name: not name.lower().startswith(text.lower()))
    yield from map(Area, dict.fromkeys(names))


def _globs(text: str, roots: Sequence[Root], *, is_named: bool) -> Iterator[Area]:
    areas = [Area(repo_id(root), text) for root in roots[:MAX_REPOSITORIES]]
    for area in areas if is_named else [Area("", text), *areas]:
        try:
            yield read_area(write_area(area))
        except InvalidInput:
            return


def _paths(text: str, roots: Sequence[Root]) -> Iterator[Area]:
    """Folders, then files whose path contains a text; those whose name begins with it first."""
    names = {root.id: repo_id(root) for root in roots}
    repeated = repeated_files(roots)
    most = MAX_COMPARED + sum(map(len, repeated.values()))
    files = SourceFile.objects.filter(root__in=list(names)).live().ingested()
    rank = Case(
        When(path__istartswith=text, then=Value(0)),
        When(path__icontains=f"/{text}", then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    ranked = files.filter(path__icontains=text).annotate(rank=rank).order_by("rank", "path")
    own = (
        (names[root], path)
        for root, path in ranked.values_list("root_id", "path")[:most].iterator()
        if path not in repeated.get(root, ())
    )
    rows = list(islice(own, MAX_COMPARED))
    folders = dict.fromkeys(
        Area(repository, folder) for repository, path in rows for folder in _folders(path, text)
    )
    yield from islice(folders, MAX_FOLDERS)
    yield from (Area(repository, path) for repository, path in rows[:MAX_FILES])


def _folders(path: str, text: str) -> Iterator[str]:
    """The folders of a path that what was typed ends in: `sr` and `src/` name `src/`."""
    wanted = text.lower().rstrip("/")
    names = path.split("/")[:-1]
    for count in range(1, len(names) + 1):
        folder = "/".join(names[:count])
        last = folder.lower().rpartition("/")[2]
        if last.startswith(wanted.rpartition("/")[2]) and wanted in folder.lower():
            yield folder + "/"
