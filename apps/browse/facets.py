"""Filters that the search page offers: languages of the index, and facets of the results."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Count

from apps.browse.page_query import PageQuery
from apps.index.models import Root
from apps.index.queries import generation_files
from apps.index.query_cache import per_generation
from apps.index.types import FileKey
from apps.retrieval.overlaps import repeated_languages

# Values shown of each facet.
MAX_VALUES = 8


def languages(roots: Sequence[Root], chosen: str = "") -> list[tuple[str, int]]:
    """The languages of these roots with the numbers of their files, most frequent first; last the
    one that is chosen and has no file, as the search is restricted to it too."""
    total: Counter[str] = Counter()
    for root in roots:
        total.update(_languages_of(root))
    total -= repeated_languages(roots)
    counts = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return counts if not chosen or total[chosen] > 0 else [*counts, (chosen, 0)]


@per_generation
def _languages_of(root: Root) -> dict[str, int]:
    files = generation_files(root).ingested().exclude(language="")
    return dict(files.order_by().values_list("language").annotate(count=Count("id")))


def counts_of(results: Mapping[FileKey, int]) -> dict[str, Counter[str]]:
    """The numbers of results by repository, language and folder. results: those of each file"""
    counts = {title: Counter[str]() for title in ("Repository", "Language", "Folder")}
    for (repo, path, language), count in results.items():
        folder, slash, _ = path.partition("/")
        values = {"Repository": repo, "Language": language, "Folder": slash and f"{folder}/"}
        for title, value in values.items():
            if value:
                counts[title][value] += count
    return counts


def facets(query: PageQuery, results: Mapping[FileKey, int]) -> dict[str, list[dict[str, Any]]]:
    """Links that narrow the search to a repository, language or folder, by title, or lift the
    filter that is `chosen`. Leaves out facets with one value, unless it is chosen.

    results: the number of those of each file
    """
    chosen = query.repositories[0] if len(query.repositories) == 1 else ""
    counts = counts_of(results)
    all_facets = {
        "Repository": _values(query, counts["Repository"], "repositories", chosen),
        "Language": _values(query, counts["Language"], "language", query.language),
        "Folder": _values(query, counts["Folder"], "path", query.path),
    }
    return {title: values for title, values in all_facets.items() if values}


def _values(query: PageQuery, counts: Counter[str], key: str, chosen: str) -> list[dict[str, Any]]:
    if len(counts) < 2 and chosen not in counts:
        return []
    blank: tuple[str, ...] | str = () if key == "repositories" else ""
    values = []
    for label, count in counts.most_common(MAX_VALUES):
        one: tuple[str, ...] | str = (label,) if key == "repositories" else label
        url = query.url(**{key: blank if label == chosen else one})
        values.append({"label": label, "count": count, "url": url, "chosen": label == chosen})
    return values
