"""Many texts as lists of terms, numbered once and then counted by numpy.

A thousand chunks hold a hundred thousand words, of which one in ten is new: Python looks each up
once, and whatever is done with all of them is done to arrays.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from apps.core.ingest_throttle import ingest_throttle

Numbers = NDArray[np.integer[Any]]


class Counts(NamedTuple):
    """How often (`times`) a `term` stands in a `text`, both by their numbers, each pair once."""

    text: Numbers
    term: Numbers
    times: Numbers


class _Known(dict[str, int]):
    """The terms met so far; a new one has the next number."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


@dataclass(frozen=True)
class Terms:
    """The terms of some texts, one text after the other: `numbers` has a number for each place, of
    which `sizes` tells how many belong to each text; `names` has the term of each number."""

    names: list[str]
    numbers: Numbers
    sizes: Numbers

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]]) -> Self:
        """Numbered as they come; gives way between two texts."""
        known = _Known()
        numbers: list[int] = []
        sizes: list[int] = []
        for text in texts:
            ingest_throttle.yield_to_queries()
            numbers.extend(map(known.__getitem__, text))
            sizes.append(len(text))
        return cls(list(known), np.array(numbers, np.int32), np.array(sizes, np.int32))

    def split(self, into: Mapping[str, Sequence[str]]) -> Self:
        """The same texts in smaller terms: what each of `names` falls into."""
        parts = self.of(map(into.__getitem__, self.names))
        ingest_throttle.yield_to_queries()
        places, sizes = expand(parts.sizes, self.numbers)
        ends = np.concatenate(([0], np.cumsum(sizes)))[np.cumsum(self.sizes)]
        return type(self)(parts.names, parts.numbers[places], np.diff(ends, prepend=0))

    def in_order(self) -> Self:
        """The same texts, with the terms numbered in alphabetical order."""
        ingest_throttle.yield_to_queries()
        order = sorted(range(len(self.names)), key=self.names.__getitem__)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return type(self)([self.names[at] for at in order], rank[self.numbers], self.sizes)

    @property
    def texts(self) -> Numbers:
        """The number of the text that each place belongs to."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def by_text(self) -> Counts:
        """In the order of texts, and of terms in each."""
        return Counts(*_pairs(self.texts, self.numbers))

    def by_term(self) -> Counts:
        """In the order of terms, and of texts in each."""
        term, text, times = _pairs(self.numbers, self.texts)
        return Counts(text, term, times)


def expand(sizes: Numbers, numbers: Numbers) -> tuple[Numbers, Numbers]:
    """Lists of these sizes stand one after the other: the places of those lists that have these
    numbers, list by list; and how many each has."""
    many = sizes[numbers]
    starts = (np.cumsum(sizes) - sizes)[numbers]
    return np.arange(many.sum()) + np.repeat(starts - (np.cumsum(many) - many), many), many


def _pairs(first: Numbers, second: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Each pair once, in order, and how often it was there."""
    base = int(second.max(initial=0)) + 1
    ingest_throttle.yield_to_queries()
    keys, times = np.unique(first.astype(np.int64) * base + second, return_counts=True)
    ingest_throttle.yield_to_queries()
    return *np.divmod(keys, base), times
