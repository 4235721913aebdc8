"""Isolates failures of Chroma: of one collection, of its process, or of the whole store.

A collection that crashes Chroma is not called again: each call would restart the process for all
others. `Guarded.examine` distinguishes a broken collection from a temporary failure.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from apps.core.errors import Unavailable
from apps.embedding.types import Vectors
from apps.index.changes import check_due
from apps.index.vectors.chroma import BROKEN, CRASHED, unavailable
from apps.index.vectors.collections import Added, Collections
from apps.index.vectors.process import may_be_malformed, sqlite_code

P = ParamSpec("P")
Result = TypeVar("Result")
# The name of a collection, and the other arguments of a verb.
Call = tuple[Any, ...]

# A collection is broken after this many failures caused by its content, each in a new process. The
# number of attempts is higher, as a call can also fail for another reason.
FAILURES, ATTEMPTS = 2, 3
# A probe reads the vectors of PROBE_ROWS rows, evenly spaced among the first PROBE_RANGE (an offset
# costs as much as reading all rows before it). Their length may differ from 1 by LENGTH_ERROR.
PROBE_ROWS, PROBE_RANGE, LENGTH_ERROR = 8, 1_000, 1e-3
CORRUPT = "Chroma failed: its index does not hold what was written"
# After one of these has failed, Chroma may have stored what it could not apply.
WRITES = (Collections.add, Collections.delete, Collections.describe, Collections.drop)


class CollectionsClient(Protocol):
    """Calls verbs of Collections, in this process or in a child."""

    def call(
        self,
        verb: Callable[Concatenate[Collections, P], Result],
        *args: P.args,
        **options: P.kwargs,
    ) -> Result:
        """Called for each operation: return the result of a verb. Raises Unavailable."""

    def restart(self) -> None:
        """Called when the next call must run in a process that has read nothing yet."""

    def free_memory(self) -> None:
        """Called when what was read is no longer needed."""

    def diagnose(self, names: Sequence[str], error: Unavailable) -> None:
        """Called when collections failed with `error`. Raises Unavailable if the cause is not the
        content of their files."""

    def set_aside(self, names: Sequence[str]) -> Path | None:
        """Called before broken collections are dropped. Moves their files; returns where to."""

    def paused(self) -> AbstractContextManager[Path | None]:
        """Called for a backup. Yields the folder of an embedded Chroma, which stays unchanged
        inside the block; None for a server."""

    def close(self) -> None:
        """Called once, when the store is closed."""


class Guarded:
    """A client that isolates failing collections. Thread-safe. Raises as `store.VectorStore`."""

    def __init__(self, client: CollectionsClient) -> None:
        self._client = client
        # Name → error, of collections that crash Chroma.
        self._crashing: dict[str, Unavailable] = {}
        # Collections that passed a probe or were created here. A failure removes all.
        self._healthy: set[str] = set()
        self._failures = 0
        # Collections that returned a vector or a record that codeinfo cannot have written.
        self._corrupt: set[str] = set()
        self.close = client.close
        self.free_memory = client.free_memory

    def call(
        self,
        verb: Callable[Concatenate[Collections, P], Result],
        *args: P.args,
        **options: P.kwargs,
    ) -> Result:
        """Return the result of a verb. Raises Unavailable."""
        try:
            result = self._client.call(verb, *args, **options)
        except Unavailable:
            self._fail()
            if verb in WRITES:
                # Chroma stores a write that it could not apply, but queries do not see it until it
                # is opened again. Until then it could not be deleted.
                self._client.restart()
            raise
        if isinstance(result, Added) and result.is_first:
            self._healthy.add(result.shard)
        if verb is Collections.drop:
            self._crashing.pop(str(args[0]), None)
            self._corrupt.discard(str(args[0]))
            self._healthy.discard(str(args[0]))
        return result

    def report_corrupt(self, name: str) -> Unavailable:
        """Count a collection as broken: it returned a vector or a record that was never written.
        Return the error to raise."""
        self._corrupt.add(name)
        self._fail()
        return unavailable(CORRUPT)

    def paused(self) -> AbstractContextManager[Path | None]:
        """As `CollectionsClient.paused`."""
        return self._client.paused()

    def each(self, verb: Callable[..., Result], calls: Sequence[Call]) -> dict[str, Result]:
        """Return collection name → result of a verb, for the collections that do not fail. Raises
        Unavailable if all fail."""
        safe_calls = [call for call in calls if call[0] not in self._crashing]
        errors = [self._crashing[call[0]] for call in calls if call[0] in self._crashing]
        results: dict[str, Result] = {}
        for call, (good, value) in zip(safe_calls, self._try_each(verb, safe_calls), strict=True):
            if good:
                results[call[0]] = value
            else:
                errors.append(value)
        if errors:
            self._fail()
        if errors and not results:
            raise errors[-1]
        return results

    def _try_each(
        self, verb: Callable[..., Any], calls: Sequence[Call]
    ) -> Sequence[tuple[bool, Any]]:
        """Return (True, result) or (False, error) for each call. If Chroma crashes, repeat the
        calls one by one, to find which collection crashes it."""
        if not calls:
            return []
        try:
            return self.call(Collections.each, verb, calls)
        except Unavailable as error:
            if error.code != CRASHED:
                raise
        return [self._try_one(verb, call) for call in calls]

    def _try_one(self, verb: Callable[..., Any], call: Call) -> tuple[bool, Any]:
        try:
            return True, self.call(verb, *call)
        except Unavailable as error:
            if error.code == BROKEN:
                raise
            if error.code == CRASHED:
                self._crashing[call[0]] = error
            return False, error

    def examine(self, name: str) -> str:
        """Return why a collection is broken; "" if it is not, or does not exist.

        A collection is broken if reading it fails twice, each time in a new process. Raises
        Unavailable for a temporary failure (a lock, a full disk, unreadable files), and if the
        whole store is broken.
        """
        if name in self._healthy:
            return ""
        if name in self._corrupt:
            self._client.diagnose([name], unavailable(CORRUPT))
            return CORRUPT
        failures, attempts = 0, 0
        while True:
            attempts += 1
            earlier_failures = self._failures
            try:
                self._probe(name)
            except Unavailable as error:
                failures += _is_content_error(error)
                if failures == FAILURES:
                    self._client.diagnose([name], error)
                    return error.message
                if attempts == ATTEMPTS or error.code == BROKEN:
                    raise
                self._client.restart()
            else:
                self._crashing.pop(name, None)
                if self._failures == earlier_failures:
                    self._healthy.add(name)
                return ""

    def _probe(self, name: str) -> None:
        """Probe each shard of a collection, and free what was read of it before the next."""
        shards = self._client.call(Collections.shards, name)
        for shard in shards:
            self._probe_shard(shard)
            if len(shards) > 1:
                self._client.free_memory()

    def _probe_shard(self, name: str) -> None:
        """Read a few rows as a search does, in several calls so that others can run between them.

        Raises Unavailable if a call fails or returns data that cannot have been written. Rows that
        are deleted meanwhile are no fault.
        """
        call = self._client.call
        ids = call(Collections.ids, name, PROBE_RANGE)
        if not ids:
            return
        sample = {ids[number * (len(ids) - 1) // (PROBE_ROWS - 1)] for number in range(PROBE_ROWS)}
        existing, vectors = call(Collections.vectors, name, sorted(sample))
        missing = sorted(sample - set(existing))
        if not are_unit_length(vectors) or (missing and call(Collections.existing, name, missing)):
            raise unavailable(CORRUPT)
        if not existing or call(Collections.nearest, name, vectors[0], 1):
            return
        if call(Collections.existing, name, existing):
            raise unavailable("Chroma failed: its index finds nothing")

    def _fail(self) -> None:
        """Forget all probes, and have the worker check the stores."""
        self._failures += 1
        self._healthy.clear()
        check_due.set()

    def set_aside(self, names: Sequence[str]) -> Path | None:
        """Drop broken collections. Return the folder that has their index files now, if any."""
        folder = self._client.set_aside(names)
        for name in names:
            self.call(Collections.drop, name)
        return folder


def are_unit_length(vectors: Vectors) -> bool:
    """Whether every row has the length 1, as all written vectors have. vectors: float32 (n, d)"""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors, axis=1)
    return bool(np.allclose(lengths, 1, atol=LENGTH_ERROR))


def _is_content_error(error: Unavailable) -> bool:
    """Whether Chroma failed because of the content of its files: it was not killed or locked, and
    the disk is not full."""
    if error.code == CRASHED:
        return True
    if not error.message.startswith("Chroma failed: "):
        return False
    return sqlite_code(error) is None or may_be_malformed(error)
