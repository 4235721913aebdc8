"""Which source files of a root answer questions now.

For one generation of a root that set never changes, so it is read once, not at every search.
"""

from uuid import UUID

from django.db.models import Q

from apps.ingest.models import Root, SourceFile

# By root, its newest generation alone: what is kept is bounded by the files there are.
_known: dict[UUID, tuple[int, frozenset[str]]] = {}


def live_files(root: Root) -> frozenset[str]:
    """The ids of its live source files, as the indexes spell them."""
    generation, files = _known.get(root.id, (0, frozenset()))
    if generation != root.generation:
        files = _read(root)
        _known[root.id] = root.generation, files
    return files


def _read(root: Root) -> frozenset[str]:
    # By the generation at hand, not the row's present one: it is what the set is kept under.
    rows = SourceFile.objects.filter(root_id=root.id, since__lte=root.generation).filter(
        Q(until__isnull=True) | Q(until__gt=root.generation)
    )
    return frozenset(str(file_id) for file_id in rows.values_list("id", flat=True).iterator())
