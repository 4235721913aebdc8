"""Files that several of the searched roots contain, because one root is inside another."""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from django.db.models import Q

from apps.index import queries
from apps.index.models import Root
from apps.index.types import Filters
from apps.retrieval.query import fits
from apps.retrieval.repositories import Repeated, RepeatedFiles

# Families of nested roots whose common files are cached.
MAX_FAMILIES = 8


class FilePlace(Protocol):
    @property
    def root(self) -> Root: ...
    @property
    def path(self) -> str: ...


class FoundLine(Protocol):
    """A line of a file in an answer."""

    @property
    def place(self) -> FilePlace: ...
    @property
    def line(self) -> int: ...


R = TypeVar("R", bound=FoundLine)


class _Version(NamedTuple):
    """A file in one root. Versions are compared by their fields in order; the greatest answers."""

    complete: bool  # the stores of the root lack nothing
    ingested_at: float  # seconds since the epoch
    depth: int  # characters of the root's folder: greater for an inner root
    root_id: UUID
    path: str
    language: str
    sha256: str


def repeated_files(roots: Sequence[Root], filters: Filters | None = None) -> RepeatedFiles:
    """The files of each root that another of these roots answers for, if it passes the filters
    there too: `app/src/` may be in the areas of a question and `src/` of the root `app` not.

    If one root is inside another, both contain the files of the inner root. Each file is returned
    once, in the version that was ingested last. If several roots have that version, the innermost
    answers, since its name is the most specific. A root whose stores lack data answers only for
    files that no other root has.
    """
    repeated: dict[UUID, Mapping[str, Repeated]] = {}
    for family in _families(roots):
        common = _cached_common(family)
        if filters is None or filters == Filters():
            repeated |= common.repeated
            continue
        own = {root.id: root for root in family}
        repeated |= _repeated(
            [v for v in versions if fits(filters, own[v.root_id], v.path, v.language)]
            for versions in common.versions
        )
    return repeated


def _repeated(files: Iterable[Sequence["_Version"]]) -> RepeatedFiles:
    """All versions of these files but those that answer."""
    repeated: dict[UUID, dict[str, Repeated]] = defaultdict(dict)
    for versions in files:
        answering = _answering(versions) if len(versions) > 1 else None
        for version in versions:
            if answering is not None and version is not answering:
                is_equal = version.sha256 == answering.sha256
                repeated[version.root_id][version.path] = Repeated(version.language, is_equal)
    return dict(repeated)


def repeated_languages(roots: Sequence[Root]) -> Counter[str]:
    """The number of repeated files by language."""
    return Counter(
        file.language for files in repeated_files(roots).values() for file in files.values()
    )


def once(rows: Iterable[R], repeated: RepeatedFiles) -> list[R]:
    """Rows that were found in each root by itself, each line of a file once, in their order.

    What only an outer root tells of a file of an inner one stays: that it calls what is outside of
    the inner one. Lines of an earlier version go.
    """
    rows = list(rows)
    files = [repeated.get(row.place.root.id, {}).get(row.place.path) for row in rows]
    teller = {
        _line(row): row.place.root.id for row, file in zip(rows, files, strict=True) if file is None
    }
    return [
        row
        for row, file in zip(rows, files, strict=True)
        if file is None
        or (file.is_equal and teller.setdefault(_line(row), row.place.root.id) == row.place.root.id)
    ]


def _line(row: FoundLine) -> tuple[str, int]:
    return file_of(row.place.root, row.place.path), row.line


def file_of(root: Root, path: str) -> str:
    """The same text for the same file of nested roots."""
    return _folder(root) + path


def is_nested(inner: Root, outer: Root) -> bool:
    """Return True if a root is inside another one."""
    return inner.id != outer.id and _folder(inner).startswith(_folder(outer))


def _families(roots: Sequence[Root]) -> Iterator[list[Root]]:
    """Groups of nested roots, the outermost first."""
    family: list[Root] = []
    for root in sorted(roots, key=_folder):
        if family and _folder(root).startswith(_folder(family[0])):
            family.append(root)
            continue
        if len(family) > 1:
            yield family
        family = [root]
    if len(family) > 1:
        yield family


def _folder(root: Root) -> str:
    return root.path.rstrip("/") + "/"


class _Common(NamedTuple):
    """The files that several roots of a family contain."""

    versions: Sequence[Sequence[_Version]]  # of each file, at least two
    repeated: RepeatedFiles


_cache: OrderedDict[tuple[object, ...], _Common] = OrderedDict()


def _cached_common(family: Sequence[Root]) -> _Common:
    key = tuple((r.id, r.generation, r.last_ingest_at, bool(r.damage)) for r in family)
    common = _cache.get(key)
    if common is None:
        versions: dict[str, list[_Version]] = defaultdict(list)
        for root in family:
            for version in _versions(root, family):
                versions[file_of(root, version.path)].append(version)
        several = [of_file for of_file in versions.values() if len(of_file) > 1]
        common = _cache[key] = _Common(several, _repeated(several))
        while len(_cache) > MAX_FAMILIES:
            _cache.popitem(last=False)
    return common


def _answering(versions: Sequence[_Version]) -> _Version:
    """The innermost of the versions that equal the latest."""
    latest = max(versions)
    same = (latest.complete, latest.sha256)
    return max(
        (version for version in versions if (version.complete, version.sha256) == same),
        key=lambda version: version.depth,
    )


def _versions(root: Root, family: Sequence[Root]) -> Iterator[_Version]:
    """The live files of a root that another root of the family may contain."""
    files = queries.generation_files(root).ingested()
    if root is family[0]:
        # The other roots are inside it, so only files below them may be repeated.
        prefixes = [_folder(other)[len(_folder(root)) :] for other in family[1:]]
        below = Q()
        for prefix in prefixes:
            below |= Q(path__startswith=prefix)
        files = files.filter(below)
    facts = (not root.damage, _seconds(root.last_ingest_at), len(_folder(root)), root.id)
    for path, language, sha256 in files.values_list("path", "language", "sha256").iterator():
        yield _Version(*facts, path, language, sha256)


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0
