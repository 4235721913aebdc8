"""The roots that this process has mapped, for searches and look-ups.

The parts that a generation lists never change, so a root stays mapped until another generation, or
another list of its parts, is asked for, or until a file is damaged.
"""

import threading
from collections.abc import Iterable
from uuid import UUID

from apps.index.mapped import lists
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root


class OpenedRoots:
    """Thread-safe."""

    def __init__(self) -> None:
        self._opening = threading.Lock()
        self._roots: dict[UUID, MappedRoot] = {}

    def get(self, root: Root) -> MappedRoot:
        """Return the mapped root, as `root` lists it. One of which parts are lost is mapped again
        by the next call: they may be back."""
        if mapped := self._held(root):
            return mapped
        with self._opening:
            if mapped := self._held(root):
                return mapped
            mapped = lists.opened(root)
            before = self._roots.get(root.id)
            is_newer = before is None or mapped.version >= before.version
            if is_newer and not mapped.lost:
                self._roots[root.id] = mapped
            return mapped

    def keep_only(self, ids: Iterable[UUID]) -> None:
        """Unmap all roots but these, so that the space of deleted files is free."""
        for root_id in self._roots.keys() - set(ids):
            self._roots.pop(root_id, None)

    def _held(self, root: Root) -> MappedRoot | None:
        mapped = self._roots.get(root.id)
        return mapped if mapped and mapped.is_of(root) and not mapped.is_lost else None


opened_roots = OpenedRoots()
