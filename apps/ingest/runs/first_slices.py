"""A first ingest publishes what it has so far, the files that were changed last before others.

So they can be searched soon. The first slice is the first batch, and each further one is as large
as all before it: few parts are written, and rows are counted twice in all. None has more than three
quarters of the files.
"""

from collections.abc import Sequence
from dataclasses import replace

from apps.core.monitoring.telemetry import span
from apps.index.mapped.live_files import LiveFiles
from apps.index.texts import get_texts
from apps.ingest.runs import listing
from apps.ingest.runs.delta import NO_CHANGES
from apps.ingest.runs.generation import Generation
from apps.ingest.runs.guards import Guard
from apps.ingest.runs.writer import Writer

# The part of all files that a slice may have: one with more would be followed by the whole soon.
LAST_SLICE = 0.75


class FirstSlices:
    """Publishes the slices of a run. Of one that is not the first of its root, none."""

    def __init__(self, generation: Generation, guard: Guard, files: int) -> None:
        """files: how many files the run has found"""
        self._generation, self._guard = generation, guard
        self._files = files if generation.is_first else 0
        self._next = 1  # published when so many files are done
        self._listed: Sequence[LiveFiles] = ()  # stay mapped for the next one

    def are_due(self, done: int) -> bool:
        """Whether to publish, after `done` files."""
        return self._next <= done <= LAST_SLICE * self._files

    def publish(self, writer: Writer, done: int) -> None:
        """Publish what was put since the last call. Raises as `Writer.parts`, `Guard.check_root`
        and `Generation.publish_slice`."""
        self._next = 2 * done
        parts = writer.parts()
        self._guard.check_root()
        get_texts().sync()
        # It counts the rows once.
        generation = replace(self._generation)
        with span("ingest rows"):
            self._listed = listing.parts_of(generation, NO_CHANGES, parts)
            generation.publish_slice(self._listed, self._files)
