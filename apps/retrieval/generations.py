"""What is read once for each generation of a root, since until the next one it cannot change."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from uuid import UUID

from apps.index.models import Root

Read = TypeVar("Read")


def per_generation(read: Callable[[Root], Read]) -> Callable[[Root], Read]:
    """The same reading, done anew only for a root of another generation.

    Of each root only the newest is kept, so what is kept is bounded by what there is.
    """
    known: dict[UUID, tuple[int, Read]] = {}

    @wraps(read)
    def of(root: Root) -> Read:
        kept = known.get(root.id)
        if kept is None or kept[0] != root.generation:
            kept = known[root.id] = root.generation, read(root)
        return kept[1]

    return of
