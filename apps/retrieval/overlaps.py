"""Files that several of the searched roots contain: one root is inside another, or they are refs of
one repository."""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from django.db.models import Q

from apps.index import queries
from apps.index.models import Root
from apps.index.types import Filters
from apps.retrieval.query import fits
from apps.retrieval.repositories import Repeated, RepeatedFiles

# Families of roots whose common files are cached, and these files, which take 200 bytes each. A
# question to all repositories asks for each family.
MAX_FAMILIES, MAX_CACHED = 100, 1_000_000
# Files of all refs of one repository. Of more, the equal ones are returned for each ref.
MAX_FILES_OF_REFS = 300_000


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


def repeated_files(
    roots: Sequence[Root],
    filters: Filters | None = None,
    preferred: Container[Hashable] = (),
) -> RepeatedFiles:
    """The files of each root that another of these roots answers for, if it passes the filters
    there too: `app/src/` may be in the areas of a question and `src/` of the root `app` not.

    If one root is inside another, both contain the files of the inner root. Each file is returned
    once, in the version that was ingested last. If several roots have that version, the innermost
    answers, since its name is the most specific. A root whose stores lack data answers only for
    files that no other root has.

    Of refs of one repository, and its work tree, equal files are returned once, from the work tree
    or the ref that was ingested first. Files that differ are different answers.

    preferred: paths of roots that answer before their work tree
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
    for family in _families_of_refs(roots, preferred):
        own_folder = {_folder(root): root for root in family}
        outdated = {
            _folder(root) + path
            for root in family
            for path, file in repeated.get(root.id, {}).items()
            if not file.is_equal
        }
        for root_id, files in _repeated_in_refs(family).items():
            if outdated or filters not in (None, Filters()):
                files = {
                    path: file
                    for path, file in files.items()
                    if file.folder + path not in outdated
                    and fits(filters or Filters(), own_folder[file.folder], path, file.language)
                }
            nested = repeated.get(root_id)
            repeated[root_id] = {**files, **nested} if nested else files
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
        or (
            file.is_equal
            and teller.setdefault(_line(row, file), row.place.root.id) == row.place.root.id
        )
    ]


def _line(row: FoundLine, file: Repeated | None = None) -> tuple[str, int]:
    if file and file.folder:
        return file.folder + row.place.path, row.line
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


def _families_of_refs(
    roots: Sequence[Root], preferred: Container[Hashable]
) -> Iterator[list[Root]]:
    """Groups of refs of one repository, that which answers for the others first."""
    repositories = queries.repositories_of_clones() if len(roots) > 1 else {}
    if not repositories:
        return
    families: dict[str, list[Root]] = defaultdict(list)
    for root in roots:
        families[repositories.get(root.path, root.path)].append(root)
    for family in families.values():
        if len(family) > 1 and sum(root.files for root in family) <= MAX_FILES_OF_REFS:
            yield sorted(
                family,
                key=lambda root: (
                    bool(root.damage),
                    root.path not in preferred,
                    root.path in repositories,
                    root.created_at,
                ),
            )


def _repeated_in_refs(family: Sequence[Root]) -> RepeatedFiles:
    """The files of each ref that an earlier one of the family has with the same content."""
    return _cached("refs", family, lambda: _Common((), _compare_refs(family))).repeated


def _compare_refs(family: Sequence[Root]) -> RepeatedFiles:
    first: dict[tuple[str, str], Repeated] = {}
    repeated: dict[UUID, dict[str, Repeated]] = defaultdict(dict)
    for root in family:
        facts: dict[str, Repeated] = {}  # few objects, as there are many files
        rows = queries.generation_files(root).ingested()
        for path, language, digest in rows.values_list("path", "language", "sha256").iterator():
            own = facts.setdefault(language, Repeated(language, True, _folder(root)))
            answering = first.setdefault((path, digest), own)
            if answering is not own:
                repeated[root.id][path] = answering
    return dict(repeated)


def _folder(root: Root) -> str:
    return root.path.rstrip("/") + "/"


class _Common(NamedTuple):
    """The files that several roots of a family contain."""

    versions: Sequence[Sequence[_Version]]  # of each file, at least two
    repeated: RepeatedFiles


# By the kind of a family and the ids of its roots; with what tells whether it is still so.
_cache: OrderedDict[tuple[object, ...], tuple[object, _Common]] = OrderedDict()


def _cached_common(family: Sequence[Root]) -> _Common:
    return _cached("nested", family, lambda: _compare_nested(family))


def _cached(kind: str, family: Sequence[Root], compare: Callable[[], _Common]) -> _Common:
    key = (kind, *(root.id for root in family))
    version = [(root.generation, root.last_ingest_at, bool(root.damage)) for root in family]
    known, common = _cache.get(key, (None, None))
    if common is None or known != version:
        common = compare()
        _cache.pop(key, None)
        _cache[key] = version, common
        while len(_cache) > MAX_FAMILIES or (len(_cache) > 1 and _files_cached() > MAX_CACHED):
            _cache.popitem(last=False)
    return common


def _files_cached() -> int:
    commons = [common for _, common in list(_cache.values())]
    return sum(len(files) for common in commons for files in common.repeated.values())


def _compare_nested(family: Sequence[Root]) -> _Common:
    versions: dict[str, list[_Version]] = defaultdict(list)
    for root in family:
        for version in _versions(root, family):
            versions[file_of(root, version.path)].append(version)
    several = [of_file for of_file in versions.values() if len(of_file) > 1]
    return _Common(several, _repeated(several))


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
