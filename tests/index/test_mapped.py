"""The codes of the mapped copy find what exact vectors find."""

import sys
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from apps.embedding.types import Vectors
from apps.index import searches
from apps.index.mapped import nearest as module
from apps.index.mapped.codes import Codes, QueryCodes
from apps.index.mapped.nearest import distances_of, nearest
from apps.index.mapped.part import packed, unpacked
from apps.index.mapped.words import TIMES
from tests.support.mapped import mapped_of, unit_vectors

Mask = NDArray[np.bool_]
SIZES = (700, 1, 1_300)


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Select by signs among few rows too."""
    monkeypatch.setattr(module, "COARSE_ROWS", 300)
    monkeypatch.setattr(module, "COARSE_MIN", 150)
    monkeypatch.setattr(module, "COARSE_FACTOR", 5)
    monkeypatch.setattr(module, "REFINED_MIN", 120)
    monkeypatch.setattr(module, "REFINED_FACTOR", 2)


def exact(units: Sequence[Vectors], query: Vectors) -> Vectors:
    """The squared L2 distance of each row."""
    distances: Vectors = ((np.concatenate(units) - query) ** 2).sum(axis=1)
    return distances


def matrices(dimension: int, seed: int) -> list[Vectors]:
    return [unit_vectors(size, dimension, seed + size) for size in SIZES]


@pytest.mark.parametrize("dimension", [2, 3, 256, 300, 1_536])
def test_codes_keep_the_cosine_to_five_digits(dimension: int) -> None:
    units = unit_vectors(200, dimension)
    units[0] = np.eye(1, dimension)
    codes, query = Codes.of(units), QueryCodes(units[7])
    true = units @ units[7]
    cosines = codes.cosines(query, np.arange(len(units)))
    assert cosines.tolist() == pytest.approx(true.tolist(), abs=3e-5)
    margin = query.margin(float(codes.scales.max()))
    assert np.abs(codes.estimates(query) - true).max() < margin
    assert codes.differing_signs(query)[7] == 0


@pytest.mark.parametrize("dimension", [2, 16, 100, 256, 300, 1_536])
def test_differences_are_weighted_by_the_size_of_the_values(dimension: int) -> None:
    units = unit_vectors(300, dimension)
    codes, query = Codes.of(units), QueryCodes(units[3])
    sizes = np.abs(query.rotated)[0]
    levels = np.rint(sizes * (7 / sizes.max()))
    rows = np.arange(0, len(units), 3)
    differing = np.unpackbits(codes.signs[rows], axis=1) != np.unpackbits(query.signs, axis=1)
    assert codes.weighted_differences(query, rows).tolist() == (differing @ levels).tolist()
    assert codes.weighted_differences(query, rows)[1] == 0


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_are_those_of_an_exact_search(seed: int) -> None:
    units, query = matrices(64, seed), unit_vectors(1, 64, seed + 99)[0]
    true = exact(units, query)
    rows, distances, more = nearest(mapped_of(*units).parts, [None] * 3, QueryCodes(query), 50)
    assert more
    assert set(np.argsort(true)[:50].tolist()) <= set(rows.tolist())
    assert distances.tolist() == pytest.approx(true[rows].tolist(), abs=1e-4)
    assert rows.tolist() == sorted(rows.tolist())


@pytest.mark.parametrize("seed", range(5))
def test_the_steps_by_signs_lose_few_of_the_nearest(seed: int, coarse: None) -> None:
    random = np.random.default_rng(seed)
    # As texts: around common subjects. Vectors without any structure have no near neighbours.
    subjects = unit_vectors(20, 128, seed)
    noisy = [
        subjects[random.integers(0, 20, size)] + unit_vectors(size, 128, seed + size)
        for size in SIZES
    ]
    units = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in noisy]
    parts = mapped_of(*units).parts
    true = exact(units, subjects[3])
    rows, _, more = nearest(parts, [None] * 3, QueryCodes(subjects[3]), 50)
    assert more
    assert len(rows) < sum(SIZES) // 4
    assert len(set(np.argsort(true)[:50].tolist()) & set(rows.tolist())) >= 45


@pytest.mark.parametrize("count", [0, 1, 10, 290, 900])
def test_a_filter_finds_all_that_it_leaves(count: int, coarse: None) -> None:
    units, query = matrices(64, 1), unit_vectors(1, 64, 5)[0]
    accepted = np.zeros(sum(SIZES), np.bool_)
    accepted[np.random.default_rng(count).permutation(sum(SIZES))[:count]] = True
    masks = np.split(accepted, np.cumsum(SIZES)[:-1])
    rows, _, more = nearest(mapped_of(*units).parts, masks, QueryCodes(query), 300)
    assert accepted[rows].all()
    if count <= 300:
        assert rows.tolist() == np.flatnonzero(accepted).tolist()
        assert not more
    else:
        assert len(rows) >= 300


def test_wider_requests_reach_every_row(coarse: None) -> None:
    units, query = matrices(16, 2), QueryCodes(unit_vectors(1, 16, 6)[0])
    parts = mapped_of(*units).parts
    found = [nearest(parts, [None] * 3, query, n) for n in (10, 200, 1_000, 5_000)]
    sizes = [len(rows) for rows, _, _ in found]
    assert sizes == sorted(sizes)
    assert sizes[-1] == sum(SIZES)
    assert [more for _, _, more in found] == [True, True, True, False]


def test_two_threads_find_what_one_finds(coarse: None) -> None:
    units, query = matrices(16, 2), QueryCodes(unit_vectors(1, 16, 6)[0])
    parts = mapped_of(*units).parts
    alone = nearest(parts, [None] * 3, query, 50)
    with searches.in_progress():
        together = nearest(parts, [None] * 3, query, 50)
    assert [each.tolist() for each in together[:2]] == [each.tolist() for each in alone[:2]]


def test_distances_of_any_rows_are_those_of_the_vectors() -> None:
    units, query = matrices(32, 3), unit_vectors(1, 32, 7)[0]
    rows = np.array([1_999, 0, 700, 701, 3])
    distances = distances_of(mapped_of(*units).parts, rows, QueryCodes(query))
    assert distances.tolist() == pytest.approx(exact(units, query)[rows].tolist(), abs=1e-4)


def test_only_live_rows_have_a_part_in_a_generation() -> None:
    live = np.array([True, False, True, False])
    root = mapped_of(unit_vectors(4, 8), live=[live])
    (part,) = root.parts
    assert part.live is not None
    assert part.live.tolist() == live.tolist()
    assert root.live == 2
    assert unpacked(packed(live), 4).tolist() == live.tolist()


def test_searches_keep_the_counts_of_references(coarse: None) -> None:
    """Python ends the process when a C extension releases None too often."""
    units, query = matrices(16, 4), QueryCodes(unit_vectors(1, 16, 6)[0])
    parts = mapped_of(*units).parts
    before = sys.getrefcount(None)
    for _ in range(500):
        nearest(parts, [None] * 3, query, 10)
    assert abs(sys.getrefcount(None) - before) < 100


def test_occurrences_are_exact_until_they_hardly_count() -> None:
    assert TIMES[:224].tolist() == list(range(224))
    assert TIMES[-1] >= 255 * 7
    assert len(TIMES) == 256
