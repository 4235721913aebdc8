"""Which source files of a root answer questions now."""

from django.db.models import Q

from apps.ingest.models import Root, SourceFile
from apps.retrieval.generations import per_generation


@per_generation
def live_files(root: Root) -> frozenset[str]:
    """The ids of its live source files, as the indexes spell them."""
    # By the generation at hand, not the row's present one: it is what the set is kept under.
    rows = SourceFile.objects.filter(root_id=root.id, since__lte=root.generation).filter(
        Q(until__isnull=True) | Q(until__gt=root.generation)
    )
    return frozenset(str(file_id) for file_id in rows.values_list("id", flat=True).iterator())
