"""Filters that the search page offers: languages of the index, and facets of the results."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count

from apps.browse.page_query import PageQuery
from apps.index.models import Root
from apps.index.queries import generation_files
from apps.index.query_cache import per_generation
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
    found = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return found if not chosen or total[chosen] > 0 else [*found, (chosen, 0)]


@per_generation
def _languages_of(root: Root) -> dict[str, int]:
    files = generation_files(root).ingested().exclude(language="")
    return dict(files.order_by().values_list("language").annotate(count=Count("id")))


@dataclass(frozen=True)
class FacetValue:
    """A link that narrows the search, or lifts the filter if it is `chosen`."""

    label: str
    count: int  # results
    url: str
    chosen: bool  # the filter is set


@dataclass(frozen=True)
class Facet:
    title: str
    values: Sequence[FacetValue]


@dataclass(frozen=True)
class ResultFile:
    """The file of a result."""

    repo: str
    path: str
    language: str

    @property
    def folder(self) -> str:
        """The first folder with its slash, as a path prefix."""
        first, slash, _ = self.path.partition("/")
        return f"{first}/" if slash else ""


def facets(query: PageQuery, files: Sequence[ResultFile]) -> list[Facet]:
    """Results by repository, language and folder. Leaves out facets with one value, unless it is
    chosen."""
    repos = Counter(file.repo for file in files)
    chosen = query.repositories[0] if len(query.repositories) == 1 else ""
    all_facets = [
        Facet("Repository", _values(query, repos, "repositories", chosen)),
        Facet("Language", _values(query, _counted(files, "language"), "language", query.language)),
        Facet("Folder", _values(query, _counted(files, "folder"), "path", query.path)),
    ]
    return [facet for facet in all_facets if facet.values]


def _counted(files: Sequence[ResultFile], name: str) -> Counter[str]:
    return Counter(value for file in files if (value := getattr(file, name)))


def _values(query: PageQuery, counts: Counter[str], key: str, chosen: str) -> list[FacetValue]:
    if len(counts) < 2 and chosen not in counts:
        return []
    blank: tuple[str, ...] | str = () if key == "repositories" else ""
    values = []
    for label, count in counts.most_common(MAX_VALUES):
        one: tuple[str, ...] | str = (label,) if key == "repositories" else label
        url = query.url(**{key: blank if label == chosen else one})
        values.append(FacetValue(label, count, url, label == chosen))
    return values
