"""The mapped roots of this process, for look-ups.

Searches hold them in a cache (`apps.retrieval.root_cache`), which is above this room and hands
itself down.
"""

from collections.abc import Callable

from apps.index import queries
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root

# A root and the dimension of its vectors → the root, if it is mapped at its generation or can be.
Get = Callable[[Root, int], MappedRoot | None]

caches: list[Get] = []


def use(get: Get) -> None:
    """Have `mapped` return what a cache holds."""
    caches[:] = [get]


def mapped(root: Root) -> MappedRoot | None:
    """The root as searches read it; None if it is not mapped."""
    dimension = queries.locked_dimension()
    roots = (get(root, dimension) for get in caches if dimension is not None)
    return next(roots, None)
