"""Count the terms of many texts with numpy.

Python gives each distinct term a number once; everything else works on arrays of numbers. A
thousand chunks have about 100,000 words, of which 10,000 are distinct.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.integer[Any]]


class Vocabulary(defaultdict[str, int]):
    """The number of each term. A new term gets the next number: without a call of Python, as most
    terms of code are new."""

    def __init__(self) -> None:
        super().__init__(count().__next__)


@dataclass(frozen=True)
class Terms:
    """The terms of n texts, one text after the other."""

    names: list[str]  # the term of each number
    numbers: Numbers  # int (sum of sizes): the number of each occurrence
    sizes: Numbers  # int (n): occurrences in each text

    @classmethod
    def of(cls, texts: Iterable[Sequence[str]], vocabulary: Vocabulary | None = None) -> Self:
        """Number terms in the order of their first occurrence.

        vocabulary: terms that have a number already; it gets the new ones
        """
        vocabulary = Vocabulary() if vocabulary is None else vocabulary
        numbers: list[int] = []
        sizes: list[int] = []
        for text in texts:
            numbers.extend(map(vocabulary.__getitem__, text))
            sizes.append(len(text))
        return cls(list(vocabulary), np.array(numbers, np.int32), np.array(sizes, np.int32))

    def split(self, into: Mapping[str, Sequence[str]]) -> Self:
        """Replace each term by its parts, `into[term]`."""
        parts = self.of(map(into.__getitem__, self.names))
        places, sizes = expand(parts.sizes, self.numbers)
        ends = np.concatenate(([0], np.cumsum(sizes)))[np.cumsum(self.sizes)]
        return type(self)(parts.names, parts.numbers[places], np.diff(ends, prepend=0))

    def in_order(self) -> Self:
        """Renumber the terms in alphabetical order."""
        order = sorted(range(len(self.names)), key=self.names.__getitem__)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return type(self)([self.names[at] for at in order], rank[self.numbers], self.sizes)

    @property
    def texts(self) -> Numbers:
        """The index of the text of each occurrence."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def expand(sizes: Numbers, numbers: Numbers) -> tuple[Numbers, Numbers]:
    """Select lists from a concatenation of lists of these sizes, by their numbers.

    Returns the positions in the concatenation of all items selected, and the size of each selected
    list: expand([2, 1, 3], [2, 0]) is ([3, 4, 5, 0, 1], [3, 2]).
    """
    many = sizes[numbers]
    starts = (np.cumsum(sizes) - sizes)[numbers]
    return np.arange(many.sum()) + np.repeat(starts - (np.cumsum(many) - many), many), many


def pairs(first: Numbers, second: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The distinct pairs in order, and the number of occurrences of each."""
    base = int(second.max(initial=0)) + 1
    keys, times = np.unique(first.astype(np.int64) * base + second, return_counts=True)
    return *np.divmod(keys, base), times
