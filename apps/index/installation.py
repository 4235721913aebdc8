"""The id of this installation, and what it writes into each collection and word index."""

from apps.index.models import Installation, Root
from apps.index.types import Origin


def installation_id() -> str:
    """The id that this database has; made when it is first asked for, by one of those who ask."""
    row, _ = Installation.objects.get_or_create(id=1)
    return str(row.uid)


def origin_of(root: Root) -> Origin:
    """What the index of a root says of itself."""
    return Origin(installation_id(), root.path, root.name)
