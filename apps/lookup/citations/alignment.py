"""Which lines of a text of now are those of an earlier one."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from apps.lookup.history.lines import line_numbers


def aligned(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """The index in `new` of each line of `old`; -1 for none. Lines that both have once come first,
    as in patience diff: a copy of a passage that was altered does not take its place."""
    anchors = [(-1, -1), *_in_order(_common(old, new)), (len(old), len(new))]
    to = [-1] * len(old)
    for (left, above), (right, below) in pairwise(anchors):
        if left >= 0:
            to[left] = above
        between = line_numbers(old[left + 1 : right], new[above + 1 : below])
        for n, number in enumerate(between, left + 1):
            to[n] = above + number if number else -1
    return to


def _common(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The indexes of the lines that both have once."""
    counts, others = Counter(old), Counter(new)
    index_of = {line: n for n, line in enumerate(new) if others[line] == 1 == counts[line]}
    return [(n, index_of[line]) for n, line in enumerate(old) if line in index_of]


def _in_order(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of some pairs whose second members grow, as the first ones do."""
    ends: list[int] = []  # of the best part of each length, its last second member
    chosen: list[int] = []  # the pair that has it
    previous: list[int] = []  # of each pair, the one before it
    for n, (_, second) in enumerate(pairs):
        length = bisect_left(ends, second)
        ends[length : length + 1] = [second]
        chosen[length : length + 1] = [n]
        previous.append(chosen[length - 1] if length else -1)
    at = chosen[-1] if chosen else -1
    part = []
    while at >= 0:
        part.append(pairs[at])
        at = previous[at]
    return part[::-1]
