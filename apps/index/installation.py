"""The id of this installation, which each collection and part records."""

from apps.index.models import Installation, Root
from apps.index.types import Origin


def installation_id() -> str:
    """Return the id of this database. The first call creates it."""
    row, _ = Installation.objects.get_or_create(id=1)
    return str(row.uid)


def origin_of(root: Root) -> Origin:
    """Return the origin that the index of a root records."""
    return Origin(installation_id(), root.path, root.name)
