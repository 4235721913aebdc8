"""The best rows by BM25 are those of scoring all hits."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from apps.index.lexical import scoring
from apps.index.mapped.best import PartHits, best
from apps.index.mapped.part import LivePart, Mask
from apps.index.mapped.words import TIMES, Words
from tests.support.mapped import part_of, unit_vectors

SIZES = (900, 1, 1_400)
# The share of the rows that have each word: from rare to as frequent as no stop word is.
SHARES = (0.002, 0.01, 0.1, 0.3, 0.4)
UNITS = [unit_vectors(size, 2) for size in SIZES]


def hits_of(random: np.random.Generator, shares: Sequence[float]) -> list[PartHits]:
    """The hits of a word for each share in the rows of some parts, a tenth of them not live."""
    found = [[random.random(size) < share for share in shares] for size in SIZES]
    live = [random.random(size) < 0.9 for size in SIZES]
    lengths = [np.where(mask, random.integers(1, 400, len(mask)), 0) for mask in live]
    norms, chunks = scoring.norms(np.concatenate(lengths).astype(np.uint32))
    counts = np.sum([[word.sum() for word in of_part] for of_part in found], axis=0)
    idf = scoring.idf(counts.astype(np.float64), chunks)
    parts = []
    for units, of_part, mask, of_rows in zip(
        UNITS, found, live, np.split(norms, np.cumsum(SIZES)[:-1]), strict=True
    ):
        rows = [np.flatnonzero(word).astype(np.uint16) for word in of_part]
        ends = np.cumsum([0, *map(len, rows)]).tolist()
        words = Words(
            np.arange(len(rows), dtype=np.uint32),
            np.zeros(len(rows), np.uint16),
            np.array(ends, np.uint32),
            np.concatenate(rows),
            random.geometric(0.4, ends[-1]).astype(np.uint8),
        )
        part = replace(part_of(units), words=words)
        slices = [slice(*bounds) for bounds in zip(ends, ends[1:], strict=False)]
        parts.append(PartHits(LivePart(part, mask, of_rows, mask), slices, idf))
    return parts


def every_score(parts: Sequence[PartHits], accepted: Sequence[Mask]) -> NDArray[np.float64]:
    """The score of each row by all its words."""
    scores = [np.zeros(len(each.part)) for each in parts]
    for hits, of_part, mask in zip(parts, scores, accepted, strict=True):
        words = hits.part.part.words
        for idf, within in zip(hits.idf, hits.slices, strict=True):
            rows, times = words.rows[within], TIMES[words.times[within]]
            of_part[rows] += idf * times / (times + hits.part.norms[rows])
        of_part[~mask] = 0
    return np.concatenate(scores)


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.sampled_from(SHARES), min_size=1, max_size=6),
    st.sampled_from([1, 5, 50, 500, 5_000]),
    st.booleans(),
)
def test_the_best_have_the_scores_of_all_their_words(
    seed: int, shares: Sequence[float], n: int, is_filtered: bool
) -> None:
    random = np.random.default_rng(seed)
    parts = hits_of(random, shares)
    live = [each.part.live for each in parts]
    accepted = [mask & (random.random(len(mask)) < 0.5) for mask in live if mask is not None]
    masks = accepted if is_filtered else [mask for mask in live if mask is not None]
    expected = every_score(parts, masks)
    rows, scores, more = best(parts, accepted if is_filtered else live, n)
    assert rows.tolist() == sorted(set(rows.tolist()))
    order = np.argsort(-expected, kind="stable")[:n]
    wanted = order[expected[order] > 0]
    # All that tie with the last are there too.
    tied = np.flatnonzero(expected >= expected[wanted[-1]] * (1 - 1e-7)) if len(wanted) else wanted
    assert set(tied.tolist()) <= set(rows.tolist())
    found = dict(zip(rows.tolist(), scores.tolist(), strict=True))
    assert [found[row] for row in tied.tolist()] == pytest.approx(expected[tied].tolist())
    assert more == (np.count_nonzero(expected) >= n)


def test_rows_that_cannot_be_among_the_best_are_left_out() -> None:
    parts = hits_of(np.random.default_rng(1), (0.05, 0.4))
    rows, _, more = best(parts, [each.part.live for each in parts], 20)
    assert more
    assert 20 <= len(rows) <= 80


def test_nothing_is_found_without_words() -> None:
    assert [len(each) for each in best([], [], 10)[:2]] == [0, 0]
    parts = [each._replace(slices=[]) for each in hits_of(np.random.default_rng(1), (0.1,))]
    assert best(parts, [None] * 3, 10)[2] is False
