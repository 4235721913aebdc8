"""Which source files of a root answer questions now."""

from django.db.models import Q

from apps.index.models import Root, SourceFile, SourceFileQuerySet
from apps.retrieval.generations import per_generation


@per_generation
def live_files(root: Root) -> frozenset[str]:
    """The ids of its live source files, as the indexes spell them."""
    ids = files_of(root).values_list("id", flat=True)
    return frozenset(str(file_id) for file_id in ids.iterator())


def files_of(root: Root) -> SourceFileQuerySet:
    """The rows of its files that are live at the generation at hand, not at the row's present one:
    it is what readings are kept under."""
    return SourceFile.objects.filter(root_id=root.id, since__lte=root.generation).filter(
        Q(until__isnull=True) | Q(until__gt=root.generation)
    )
