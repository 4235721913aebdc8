"""Calls of a Chroma that may fail: one collection alone, or its process, or all of it.

A collection that crashes Chroma is found out and left alone from then on: each further try would
cost everyone a restart. `Guarded.examine` tells what is broken from what passes.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from apps.core.errors import Unavailable
from apps.index.vectors.chroma import BROKEN, CRASHED, failed
from apps.index.vectors.collections import Collections
from apps.index.vectors.process import may_be_malformed, sqlite_code

Asked = ParamSpec("Asked")
Result = TypeVar("Result")
# The name of a collection, and what else a verb is called with.
Call = tuple[Any, ...]

# Failures of its own, in fresh processes, after which a collection counts as broken; and how often
# it is tried, since a call can be lost for another reason.
FAILURES, ATTEMPTS = 2, 3


class Client(Protocol):
    """Has the verbs of Collections done, here or in another process."""

    def ask(
        self,
        verb: Callable[Concatenate[Collections, Asked], Result],
        *args: Asked.args,
        **options: Asked.kwargs,
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
        self.close = client.close

    def ask(
        self,
        verb: Callable[Concatenate[Collections, Asked], Result],
        *args: Asked.args,
        **options: Asked.kwargs,
    ) -> Result:
        """What a verb answers."""
        try:
            result = self._client.ask(verb, *args, **options)
        except Unavailable:
            failed.set()
            raise
        if verb is Collections.drop:
            self._crashing.pop(str(args[0]), None)
        return result

    def paused(self) -> AbstractContextManager[Path | None]:
        """The folder of an embedded Chroma, while nothing is done in it."""
        return self._client.paused()

    def each(self, verb: Callable[..., Result], calls: Sequence[Call]) -> dict[str, Result]:
        """By name, what a verb answers to each of some calls, of the collections that do not fail.
        Raises Unavailable where all do."""
        asked = [call for call in calls if call[0] not in self._crashing]
        errors = [self._crashing[call[0]] for call in calls if call[0] in self._crashing]
        answers: dict[str, Result] = {}
        for call, (good, value) in zip(asked, self._answers(verb, asked), strict=True):
            if good:
                answers[call[0]] = value
            else:
                errors.append(value)
        if errors:
            failed.set()
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
        failures, attempts = 0, 0
        while True:
            attempts += 1
            try:
                self._client.ask(Collections.probe, name)
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
                return ""

    def set_aside(self, names: Sequence[str]) -> Path | None:
        """Drop collections that are broken; where their index files are kept, if there are any."""
        kept = self._client.set_aside(names)
        for name in names:
            self.ask(Collections.drop, name)
        return kept


def _is_of_content(error: Unavailable) -> bool:
    """Whether Chroma failed at what it read, and not because it was lost, locked or had no room."""
    if error.code == CRASHED:
        return True
    if not error.message.startswith("Chroma failed: "):
        return False
    return sqlite_code(error) is None or may_be_malformed(error)
