"""Interleaves threads at their database statements, in orders that a seed decides.

One thread works at a time, from one statement to the next: so an order of steps can be repeated,
and no lock is waited for. A transaction is one step, where the database has any.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from django.db import connection, connections

PATIENCE = 60


class Turns:
    """Whose turn it is. `number`: which of `count` actors a thread is."""

    def __init__(self, seed: int, count: int) -> None:
        self._random = Random(seed)
        self._actors = set(range(count))
        self._waiting: set[int] = set()
        self._next: int | None = None
        self._changed = threading.Condition()

    @contextmanager
    def actor(self, number: int) -> Iterator[None]:
        _here.step = lambda: self._wait(number)
        try:
            _here.step()
            yield
        finally:
            del _here.step
            with self._changed:
                self._actors.remove(number)
                self._choose()

    def _wait(self, number: int) -> None:
        with self._changed:
            self._waiting.add(number)
            self._choose()
            assert self._changed.wait_for(lambda: self._next == number, PATIENCE)
            self._next = None
            self._waiting.remove(number)

    def _choose(self) -> None:
        if self._next is None and self._waiting == self._actors and self._actors:
            self._next = self._random.choice(sorted(self._actors))
            self._changed.notify_all()


# `step` of the actor that a thread is.
_here = threading.local()


def _step() -> None:
    if step := getattr(_here, "step", None):
        step()


def _statement(execute: Callable[..., Any], *statement: Any) -> Any:
    if not connection.in_atomic_block:
        _step()
    return execute(*statement)


def orders(count: int, patch: pytest.MonkeyPatch, *actors: Callable[[], object]) -> Iterator[int]:
    """Yield after each time that the actors have run, each in a thread of its own. Raises what one
    of them raises."""
    if connection.vendor == "mongodb":
        from apps.core.data.mongodb import base  # noqa: PLC0415

        outages = base.outages

        def stepping() -> Any:
            _step()
            return outages()

        patch.setattr(base, "outages", stepping)

    def work(turns: Turns, number: int) -> None:
        with connection.execute_wrapper(_statement), turns.actor(number):
            actors[number]()

    with ThreadPoolExecutor(len(actors)) as threads:
        try:
            for seed in range(count):
                turns = Turns(seed, len(actors))
                works = [threads.submit(work, turns, number) for number in range(len(actors))]
                for each in works:
                    each.result(PATIENCE)
                yield seed
        finally:
            together = threading.Barrier(len(actors))

            def close() -> None:
                together.wait(PATIENCE)
                connections.close_all()

            for _ in actors:
                threads.submit(close)
