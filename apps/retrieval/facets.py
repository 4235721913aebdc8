"""What there is to narrow a search by: the languages of the index, and what was found."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count

from apps.index.models import Root
from apps.index.queries import generation_files
from apps.index.query_cache import per_generation
from apps.retrieval.page_query import PageQuery
from apps.retrieval.repositories import repeated_languages

# More values than these are no help.
MOST = 8


def languages(roots: Sequence[Root]) -> list[tuple[str, int]]:
    """Each language with the number of its files, most first."""
    total: Counter[str] = Counter()
    for root in roots:
        total.update(_languages_of(root))
    total -= repeated_languages(roots)
    return sorted(total.items(), key=lambda item: (-item[1], item[0]))


@per_generation
def _languages_of(root: Root) -> dict[str, int]:
    files = generation_files(root).ingested().exclude(language="")
    return dict(files.order_by().values_list("language").annotate(count=Count("id")))


@dataclass(frozen=True)
class FacetValue:
    """One way to narrow what was found, or, where it is `chosen`, the way back."""

    label: str
    count: int
    url: str
    chosen: bool


@dataclass(frozen=True)
class Facet:
    title: str
    values: Sequence[FacetValue]


@dataclass(frozen=True)
class ResultFile:
    """A result as facets count it."""

    repo: str
    path: str
    language: str

    @property
    def folder(self) -> str:
        """Its first folder, with the slash that makes it a prefix."""
        first, slash, _ = self.path.partition("/")
        return f"{first}/" if slash else ""


def facets(query: PageQuery, spots: Sequence[ResultFile]) -> list[Facet]:
    """What was found by repository, language and folder; those that would not narrow are left out,
    but for a choice that is in force."""
    repos = Counter(spot.repo for spot in spots)
    chosen = query.repositories[0] if len(query.repositories) == 1 else ""
    made = [
        Facet("Repository", _values(query, repos, "repositories", chosen)),
        Facet("Language", _values(query, _counted(spots, "language"), "language", query.language)),
        Facet("Folder", _values(query, _counted(spots, "folder"), "path", query.path)),
    ]
    return [facet for facet in made if facet.values]


def _counted(spots: Sequence[ResultFile], name: str) -> Counter[str]:
    return Counter(value for spot in spots if (value := getattr(spot, name)))


def _values(query: PageQuery, counts: Counter[str], key: str, chosen: str) -> list[FacetValue]:
    if len(counts) < 2 and chosen not in counts:
        return []
    blank: tuple[str, ...] | str = () if key == "repositories" else ""
    values = []
    for label, count in counts.most_common(MOST):
        one: tuple[str, ...] | str = (label,) if key == "repositories" else label
        url = query.url(**{key: blank if label == chosen else one})
        values.append(FacetValue(label, count, url, label == chosen))
    return values
