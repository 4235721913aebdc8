"""What a discovery found, and what it left out."""

from apps.ingest.types import Discovery


def names(found: Discovery) -> list[str]:
    return [candidate.path for candidate in found.files]


def reasons(found: Discovery) -> dict[str, str]:
    return {skipped.path: skipped.reason for skipped in found.skipped}
