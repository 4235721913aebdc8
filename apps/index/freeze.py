"""Holds off what changes the published index, while all of it is copied or mended.

A run goes on meanwhile: it reads, embeds and writes chunks that nobody sees yet. What waits is
publishing, deleting and rebuilding.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from apps.core.errors import Conflict
from apps.index.types import Check, never_cancelled

# Between two looks whether somebody has cancelled.
LOOK_SECONDS = 0.2
FROZEN = "A backup or a repair is under way: try again when it is done."


class Freeze:
    """Any number of changes at once, or one freeze. Each may be entered again by its thread, and
    who has frozen the index may change it."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._changing: dict[int, int] = {}
        self._frozen_by = 0
        self._waiting = 0

    @contextmanager
    def changing(self, *, wait: bool = True) -> Iterator[None]:
        """Around a change of what is published; while the index is frozen it waits, or raises
        Conflict BUSY where it is not to."""
        me = threading.get_ident()
        with self._condition:
            if not wait and self.is_frozen:
                raise Conflict(FROZEN, code="BUSY")
            if not self._is_inside(me):
                self._condition.wait_for(lambda: not (self._frozen_by or self._waiting))
            self._changing[me] = self._changing.get(me, 0) + 1
        try:
            yield
        finally:
            with self._condition:
                self._changing[me] -= 1
                if not self._changing[me]:
                    del self._changing[me]
                self._condition.notify_all()

    @contextmanager
    def frozen(self, check: Check = never_cancelled) -> Iterator[None]:
        """Nothing that is published changes inside, but by this thread. Waits for the changes under
        way; what `check` raises meanwhile ends that."""
        me = threading.get_ident()
        with self._condition:
            self._waiting += 1
            try:
                while self._frozen_by or self._changing:
                    check()
                    self._condition.wait(LOOK_SECONDS)
                self._frozen_by = me
            finally:
                self._waiting -= 1
                self._condition.notify_all()
        try:
            yield
        finally:
            with self._condition:
                self._frozen_by = 0
                self._condition.notify_all()

    @property
    def is_frozen(self) -> bool:
        """Whether changes of other threads have to wait."""
        with self._condition:
            return bool(self._frozen_by or self._waiting) and not self._is_inside(
                threading.get_ident()
            )

    def _is_inside(self, thread: int) -> bool:
        return thread == self._frozen_by or thread in self._changing


# Of this process: only one has the embedded store.
index = Freeze()
