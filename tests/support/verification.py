"""What `verify_index` finds."""

from typing import Any

from apps.ingest.verification import Difference, compare_all


def verify(**options: Any) -> list[Difference]:
    """The differences; options of `compare_all`."""
    return compare_all(**options).differences
