"""The id of this installation, which each collection and part records."""

from apps.index.models import Installation


def installation_id() -> str:
    """Return the id of this database. The first call creates it."""
    row, _ = Installation.objects.get_or_create(id=1)
    return str(row.uid)
