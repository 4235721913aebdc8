"""What `verify_index` finds."""

from typing import Any

from apps.ingest.verification.outcome import compare_all
from apps.ingest.verification.types import Difference


def verify(**options: Any) -> list[Difference]:
    """The differences; options of `compare_all`."""
    return compare_all(**options).differences
