"""Completion of repositories, paths and languages, in any case: what begins with the text first.

The database compares, so that an index of 70,000 files is not read at each key press.
"""

from collections.abc import Iterable, Mapping, Sequence

from django.db.models import Case, IntegerField, Value, When

from apps.browse.facets import languages
from apps.core.concurrency.computed import in_thread
from apps.core.errors import NotFound
from apps.index.models import Root, SourceFile
from apps.index.queries import published_roots
from apps.mcp.types import Completion
from apps.retrieval.query import MAX_PATH
from apps.retrieval.repositories import find_root, repo_id

MAX_VALUES = 100
REPOSITORY, PATH, LANGUAGE = "repository", "path", "language"


async def complete_repository(beginning: str, others: Mapping[str, str]) -> Completion:
    """The ids of repositories, by name."""
    return await in_thread(_repositories, beginning)


async def complete_path(beginning: str, others: Mapping[str, str]) -> Completion:
    """The paths of the chosen repository, or of all: that begin with the text, then whose name in
    some folder does, then others that contain it."""
    return await in_thread(_paths, beginning, others.get(REPOSITORY, ""))


async def complete_language(beginning: str, others: Mapping[str, str]) -> Completion:
    """The languages of the chosen repository, or of all, most frequent first."""
    return await in_thread(_languages, beginning, others.get(REPOSITORY, ""))


def matching(values: Iterable[str], text: str) -> Completion:
    """The values that begin with a text, then those that contain it, in any case."""
    lower = text.lower()
    matches = [value for value in values if lower in value.lower()]
    matches.sort(key=lambda value: not value.lower().startswith(lower))
    return Completion(matches[:MAX_VALUES], len(matches))


def _repositories(beginning: str) -> Completion:
    return matching(sorted({repo_id(root) for root in published_roots()}), beginning)


def _languages(beginning: str, repository: str) -> Completion:
    counted = languages(_roots(repository))
    return matching([language for language, _ in counted], beginning)


def _paths(beginning: str, repository: str) -> Completion:
    roots = _roots(repository)
    if not roots or "\0" in beginning or len(beginning) > MAX_PATH:
        return Completion((), 0)
    files = SourceFile.objects.filter(root__in=[root.id for root in roots]).live().ingested()
    matches = files.filter(path__icontains=beginning)
    rank = Case(
        When(path__istartswith=beginning, then=Value(0)),
        When(path__icontains=f"/{beginning}", then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    paths = matches.annotate(rank=rank).order_by("rank", "path").values_list("path", flat=True)
    values = list(dict.fromkeys(paths[:MAX_VALUES]))
    total = len(values) if len(values) < MAX_VALUES else matches.count()
    return Completion(values, total)


def _roots(repository: str) -> Sequence[Root]:
    """The repository with an id, or all for ""; none for an unknown one."""
    try:
        return [find_root(repository)] if repository else published_roots()
    except NotFound:
        return ()
