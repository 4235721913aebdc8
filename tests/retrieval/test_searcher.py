"""Hits in mapped parts: their distances, their order, and which of them are kept."""

import numpy as np
import pytest

from apps.index.models import Root
from apps.retrieval.candidates import Hits, Searcher
from apps.retrieval.query import SearchQuery
from tests.support.mapped import mapped_of, unit_vectors


def test_distances_are_those_of_the_vectors() -> None:
    units = unit_vectors(500, 256)
    query = SearchQuery("any", vector=units[3])
    distances = Searcher([(Root(), mapped_of(units))], query).nearest(500).values
    true = ((units - units[3]) ** 2).sum(axis=1)
    assert distances.tolist() == pytest.approx(true.tolist(), abs=5e-5)
    assert np.all(distances >= 0)


def test_hits_are_sorted_by_value_and_ties_keep_their_order() -> None:
    side = Hits(np.arange(6), np.array([3.0, 1.0, 2.0, 1.0, 4.0, 2.0]), more=False)
    assert side.best(3.0).rows.tolist() == [1, 3, 2, 5, 0]
    assert side.best(0.5).values.tolist() == []


def test_of_tied_hits_at_most_n_of_each_root_are_kept() -> None:
    units = np.array([[1, 0], [0, 1], [0, -1]], np.float32)
    mapped = [(Root(name=name), mapped_of(units)) for name in "ab"]
    searcher = Searcher(mapped, SearchQuery("any", vector=units[0]))
    side = Hits(np.arange(6), np.array([2.0, 1.0, 2.0, 2.0, 2.0, 3.0]), more=False)
    assert searcher.best(side, 2).rows.tolist() == [1, 0, 3, 4]
    assert searcher.best(side, 5).rows.tolist() == [1, 0, 2, 3, 4]
