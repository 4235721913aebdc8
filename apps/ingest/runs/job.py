"""The cancellation of a run that is being executed."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from uuid import UUID

from apps.core.concurrency.per_process import Closable
from apps.index.models import IngestRun


class RunCancelled(Exception):
    """The run was cancelled. Not an error: it unwinds the pipeline."""


def stop_for_runs() -> None:
    """Raise RunCancelled if a run is under way or queued, perhaps by another process."""
    if IngestRun.objects.live().exists():
        raise RunCancelled


# A resource that blocks the worker and that `cancel` closes: its `close` is called once or twice,
# maybe from another thread than the one that uses it.
ClosableT = TypeVar("ClosableT", bound=Closable)


class Job:
    """Shared by the worker, which calls `check`, and threads that call `cancel`."""

    def __init__(self, run_id: UUID, let_overtake: Callable[[], None] | None = None) -> None:
        """let_overtake: executes short runs that others wait for; called in the worker's thread"""
        self.run_id = run_id
        self._let_overtake = let_overtake
        self.done = threading.Event()
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._closing = threading.Lock()
        self._open: list[Closable] = []
        self._reason = ""

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    @property
    def interrupted(self) -> bool:
        """Whether it was cancelled because the process ends."""
        return self._reason != ""

    def cancel(self, reason: str = "") -> None:
        """Cancel the run, and close the resources that the worker waits for.

        reason: why the process ends; empty if a user cancelled the run
        """
        with self._lock:
            self._reason = reason
            self._cancelled.set()
            resources = list(self._open)
        for resource in resources:
            self._close(resource)

    def check(self) -> None:
        """Raise RunCancelled if the run was cancelled. Called between the steps."""
        if self._cancelled.is_set():  # not by the property: it is called for each file
            raise RunCancelled

    def pause(self) -> None:
        """Let short runs overtake this one. Called where nothing is half written."""
        if self._let_overtake is not None and not self.cancelled:
            self._let_overtake()

    @contextmanager
    def closing(self, resource: ClosableT) -> Iterator[ClosableT]:
        """Close `resource`, which the worker may wait for, at the end of the block; also in another
        thread before, if the run is cancelled."""
        with self._lock:
            self._open.append(resource)
        try:
            self.check()
            yield resource
        finally:
            with self._lock:
                self._open.remove(resource)
            self._close(resource)

    def _close(self, resource: Closable) -> None:
        # `cancel` and the unwinding worker may call this at the same time.
        with self._closing:
            resource.close()
