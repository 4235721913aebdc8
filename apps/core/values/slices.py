"""Long lists in parts, for queries that take so many values at once."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")


def slices(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of at most `size`."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


def grouped(
    items: Iterable[Item], size_of: Callable[[Item], int], size: int
) -> Iterator[list[Item]]:
    """Yield the items in lists whose sizes are `size` together, or just above; the last may be
    smaller."""
    group: list[Item] = []
    total = 0
    for item in items:
        group.append(item)
        total += size_of(item)
        if total >= size:
            yield group
            group, total = [], 0
    if group:
        yield group
