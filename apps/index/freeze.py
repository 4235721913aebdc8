"""A lock that stops changes of the published index while it is copied or repaired.

Publishing, merging and deleting wait. A run continues to read, embed and write chunks, which
are not published yet.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from apps.core.errors import Conflict
from apps.index.types import Check, never_cancelled

# How often a waiting `frozen` calls its check.
POLL_SECONDS = 0.2
FROZEN = "A backup or a repair is under way: try again when it is done."


class Freeze:
    """A reentrant lock: any number of threads that change the index, or one that freezes it.

    The thread that freezes the index may also change it.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._changing: dict[int, int] = {}
        self._frozen_by = 0
        self._waiting = 0

    @contextmanager
    def changing(self, *, wait: bool = True) -> Iterator[None]:
        """Hold the lock for a change of what is published. While another thread freezes the index,
        wait, or raise Conflict BUSY if `wait` is false."""
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
        """Freeze the index: inside the block only this thread changes what is published.

        Waits for changes in progress. `check` is called while waiting; an exception that it raises
        ends the wait.
        """
        me = threading.get_ident()
        with self._condition:
            self._waiting += 1
            try:
                while self._frozen_by or self._changing:
                    check()
                    self._condition.wait(POLL_SECONDS)
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
        """Whether a change by the calling thread has to wait."""
        with self._condition:
            return bool(self._frozen_by or self._waiting) and not self._is_inside(
                threading.get_ident()
            )

    def _is_inside(self, thread: int) -> bool:
        return thread == self._frozen_by or thread in self._changing


# One per process. Others that share the data folder do not wait: a backup checks for it.
index = Freeze()
