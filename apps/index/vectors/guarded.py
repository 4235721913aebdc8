"""Calls of a Chroma that may fail: one collection alone, or its process, or all of it.

A collection that crashes Chroma is found out and left alone from then on: each further try would
cost everyone a restart. `Guarded.examine` tells what is broken from what passes.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from apps.core.errors import Unavailable
from apps.embedding.types import Vectors
from apps.index.vectors.chroma import BROKEN, CRASHED, failed, unavailable
from apps.index.vectors.collections import Collections
from apps.index.vectors.process import may_be_malformed, sqlite_code

P = ParamSpec("P")
Result = TypeVar("Result")
# The name of a collection, and what else a verb is called with.
Call = tuple[Any, ...]

# Failures of its own, in fresh processes, after which a collection counts as broken; and how often
# it is tried, since a call can be lost for another reason.
FAILURES, ATTEMPTS = 2, 3
# Rows whose vectors a probe reads, evenly spaced among the first so many (an offset costs as much
# as all rows before it), and how far from 1 their length may be.
PROBED, PROBED_AMONG, LENGTH_ERROR = 8, 1_000, 1e-3
UNTRUE = "Chroma failed: its index does not hold what was written"
# After these a collection is not what it was when it was probed.
WRITES = (Collections.add, Collections.delete, Collections.describe, Collections.drop)


class Client(Protocol):
    """Has the verbs of Collections done, here or in another process."""

    def ask(
        self,
        verb: Callable[Concatenate[Collections, P], Result],
        *args: P.args,
        **options: P.kwargs,
    ) -> Result: ...

    def renew(self) -> None:
        """Called before a call that is to be done by a process that has read nothing yet."""

    def judge(self, names: Sequence[str], error: Unavailable) -> None:
        """Called when collections have failed with `error`; raises Unavailable where it is not
        their files that fail."""

    def set_aside(self, names: Sequence[str]) -> Path | None:
        """Called before collections are dropped that are broken: move their files away."""

    def paused(self) -> AbstractContextManager[Path | None]:
        """Called for a backup: the folder of an embedded Chroma, nothing done in it meanwhile."""

    def close(self) -> None: ...


class Guarded:
    """A client. Safe from any thread. Errors are those of `store.VectorStore`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # Collections that crash Chroma, by name, and how.
        self._crashing: dict[str, Unavailable] = {}
        # Those that were probed and are sound, until they are written or anything fails; and how
        # often that has happened.
        self._sound: set[str] = set()
        # Those of which a vector was read that nobody wrote.
        self._untrue: set[str] = set()
        self._doubts = 0
        self.close = client.close

    def ask(
        self,
        verb: Callable[Concatenate[Collections, P], Result],
        *args: P.args,
        **options: P.kwargs,
    ) -> Result:
        """What a verb answers."""
        try:
            result = self._client.ask(verb, *args, **options)
        except Unavailable:
            self._fail()
            if verb in WRITES:
                # Chroma keeps what it could not apply, and shows it to nobody before it is opened
                # again: who deletes it meanwhile finds nothing.
                self._client.renew()
            raise
        finally:
            if verb in WRITES:
                self._doubt({str(args[0])})
        if verb is Collections.drop:
            self._crashing.pop(str(args[0]), None)
            self._untrue.discard(str(args[0]))
        return result

    def distrust(self, name: str) -> Unavailable:
        """Count a collection as broken, since a vector was read that nobody wrote; the error."""
        self._untrue.add(name)
        self._fail()
        return unavailable(UNTRUE)

    def paused(self) -> AbstractContextManager[Path | None]:
        """The folder of an embedded Chroma, while nothing is done in it."""
        return self._client.paused()

    def each(self, verb: Callable[..., Result], calls: Sequence[Call]) -> dict[str, Result]:
        """By name, what a verb answers to each of some calls, of the collections that do not fail.
        Raises Unavailable where all do."""
        sound_calls = [call for call in calls if call[0] not in self._crashing]
        errors = [self._crashing[call[0]] for call in calls if call[0] in self._crashing]
        answers: dict[str, Result] = {}
        for call, (good, value) in zip(sound_calls, self._answers(verb, sound_calls), strict=True):
            if good:
                answers[call[0]] = value
            else:
                errors.append(value)
        if errors:
            self._fail()
        if errors and not answers:
            raise errors[-1]
        return answers

    def _answers(
        self, verb: Callable[..., Any], calls: Sequence[Call]
    ) -> Sequence[tuple[bool, Any]]:
        """(True, answer) or (False, error) for each call. Where one of them crashes Chroma, each is
        asked for once more by itself."""
        if not calls:
            return []
        try:
            return self.ask(Collections.each, verb, calls)
        except Unavailable as error:
            if error.code != CRASHED:
                raise
        return [self._alone(verb, call) for call in calls]

    def _alone(self, verb: Callable[..., Any], call: Call) -> tuple[bool, Any]:
        try:
            return True, self.ask(verb, *call)
        except Unavailable as error:
            if error.code == BROKEN:
                raise
            if error.code == CRASHED:
                self._crashing[call[0]] = error
            return False, error

    def examine(self, name: str) -> str:
        """Why a collection cannot be used; "" where it can, or is not there.

        It cannot if reading it fails twice, each time in a process that has read nothing before,
        and not for what passes: a lock, a full disk, files that may not be read. Then this raises
        Unavailable, as it does where the whole store is broken.
        """
        if name in self._sound:
            return ""
        if name in self._untrue:
            return UNTRUE
        failures, attempts = 0, 0
        while True:
            attempts += 1
            doubts = self._doubts
            try:
                self._probe(name)
            except Unavailable as error:
                failures += _is_of_content(error)
                if failures == FAILURES:
                    self._client.judge([name], error)
                    return error.message
                if attempts == ATTEMPTS or error.code == BROKEN:
                    raise
                self._client.renew()
            else:
                self._crashing.pop(name, None)
                if self._doubts == doubts:
                    self._sound.add(name)
                return ""

    def _probe(self, name: str) -> None:
        """Read a few rows as a search does, each read in a turn of its own: others have theirs
        between. Raises Unavailable where that fails, or where what is read cannot be what was
        written. Rows that are deleted meanwhile are no fault."""
        ask = self._client.ask
        ids = ask(Collections.ids, name, PROBED_AMONG)
        if not ids:
            return
        some = {ids[number * (len(ids) - 1) // (PROBED - 1)] for number in range(PROBED)}
        found, vectors = ask(Collections.vectors, name, sorted(some))
        lost = sorted(some - set(found))
        if not are_true(vectors) or (lost and ask(Collections.get, name, lost)):
            raise unavailable(UNTRUE)
        if not found or ask(Collections.nearest, name, vectors[0], 1):
            return
        if ask(Collections.get, name, found):
            raise unavailable("Chroma failed: its index finds nothing")

    def _fail(self) -> None:
        """Have everything looked at anew."""
        self._doubt(set(self._sound))
        failed.set()

    def _doubt(self, names: set[str]) -> None:
        self._doubts += 1
        self._sound -= names

    def set_aside(self, names: Sequence[str]) -> Path | None:
        """Drop collections that are broken; where their index files are kept, if there are any."""
        kept = self._client.set_aside(names)
        for name in names:
            self.ask(Collections.drop, name)
        return kept


def are_true(vectors: Vectors) -> bool:
    """Whether these can be what was written: all of that has the length 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors, axis=1)
    return bool(np.allclose(lengths, 1, atol=LENGTH_ERROR))


def _is_of_content(error: Unavailable) -> bool:
    """Whether Chroma failed at what it read, and not because it was lost, locked or had no room."""
    if error.code == CRASHED:
        return True
    if not error.message.startswith("Chroma failed: "):
        return False
    return sqlite_code(error) is None or may_be_malformed(error)
