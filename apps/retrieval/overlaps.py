"""Files that several of the searched roots hold, since one root lies inside another.

Such a file answers once. Of its versions the one ingested last counts, for it is nearest to what
lies on disk; where it is the same in several roots the innermost answers, whose name says most. A
root whose stores are known to lack something answers only for what no other has.
"""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models import Q

from apps.index.models import Root
from apps.index.queries import generation_files

# Of each root the files that another one answers for, as path and language.
Repeated = Mapping[UUID, Mapping[str, str]]
# What is kept, as each generation of roots that lie in each other needs it.
MOST_KEPT = 8

_kept: OrderedDict[tuple[object, ...], Repeated] = OrderedDict()


class _Version(NamedTuple):
    """A file as a root holds it. The greatest of those of one content answers."""

    whole: bool
    ingested_at: float
    depth: int
    root_id: UUID
    path: str
    language: str
    sha256: str


def repeated_files(roots: Sequence[Root]) -> Repeated:
    """The files of some roots that another one of them answers for."""
    found: dict[UUID, Mapping[str, str]] = {}
    for family in _families(roots):
        found |= _repeated_in(family)
    return found


def repeated_languages(roots: Sequence[Root]) -> Counter[str]:
    """How many such files there are of each language."""
    return Counter(
        language for files in repeated_files(roots).values() for language in files.values()
    )


def _families(roots: Sequence[Root]) -> Iterator[list[Root]]:
    """Roots that lie in each other, the outermost first."""
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


def _repeated_in(family: Sequence[Root]) -> Repeated:
    key = tuple((r.id, r.generation, r.last_ingest_at, bool(r.damage)) for r in family)
    found = _kept.get(key)
    if found is None:
        found = _kept[key] = _read(family)
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return found


def _read(family: Sequence[Root]) -> Repeated:
    versions: dict[str, list[_Version]] = defaultdict(list)
    for root in family:
        for version in _versions(root, family):
            versions[_folder(root) + version.path].append(version)
    found: dict[UUID, dict[str, str]] = defaultdict(dict)
    for several in versions.values():
        answering = _answering(several)
        for each in several:
            if each is not answering:
                found[each.root_id][each.path] = each.language
    return dict(found)


def _answering(several: Sequence[_Version]) -> _Version:
    latest = max(several)
    return max(
        (each for each in several if (each.whole, each.sha256) == (latest.whole, latest.sha256)),
        key=lambda each: each.depth,
    )


def _versions(root: Root, family: Sequence[Root]) -> Iterator[_Version]:
    """The live files of a root that another one of the family may hold."""
    files = generation_files(root).ingested()
    if root is family[0]:
        # All others lie in it, so only what is beneath them matters.
        inside = [_folder(other)[len(_folder(root)) :] for other in family[1:]]
        beneath = Q()
        for prefix in inside:
            beneath |= Q(path__startswith=prefix)
        files = files.filter(beneath)
    facts = (not root.damage, _seconds(root.last_ingest_at), len(_folder(root)), root.id)
    for path, language, sha256 in files.values_list("path", "language", "sha256").iterator():
        yield _Version(*facts, path, language, sha256)


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0
