"""Why passages rank where they do."""

import pickle

import numpy as np
import pytest

from apps.browse.box import Box
from apps.index.types import ResultPlace
from apps.retrieval.ranking.rank import RankingQuery
from apps.retrieval.ranking.reasons import reasons_for
from apps.retrieval.ranking.types import Passage, Passages


def test_ranks_are_among_all_passages_and_none_beyond_the_best() -> None:
    passages = Passages.of(
        [
            Passage("r", "a.py", "retry", similarity=0.5, words=2.0),
            Passage("r", "tests/test_b.py", "", similarity=0.9, words=0.0),
            Passage("r", "c.py", "", similarity=0.7, words=5.0),
            Passage("r", "d.py", "", similarity=None, words=3.0),
        ]
    )
    near = np.array([True, True, False, False])
    found = reasons_for(RankingQuery.of("retry"), passages, near, [0, 1, 2, 3])
    assert [found[i].by_meaning for i in range(4)] == [2, 1, None, None]
    assert [found[i].by_words for i in range(4)] == [3, None, 1, 2]
    assert found[0].names == ("retry",)
    assert [found[i].lowered for i in range(3)] == [(), ("test",), ()]
    asked = reasons_for(RankingQuery.of("test of retry"), passages, near, [1])
    assert asked[1].lowered == ()


def test_conditions_go_to_other_processes() -> None:
    box = Box.parse(r'x "Retry(" /de[fl]/i -"no" -reading')
    place = ResultPlace(("repo", "a.py", "python"), 1, 1)
    assert box(place, "DEF Retry(") and not box(place, "retry( def")
    again = pickle.loads(pickle.dumps(box))
    assert again(place, "DEF Retry(") and not again(place, "def Retry( no")
    # A word to leave out counts in every form, in names and in the path.
    assert not again(place, "def Retry(bytesRead)")
    assert not again(ResultPlace(("repo", "src/reads.py", "python"), 1, 1), "def Retry(")
    assert again(place, "def Retry(bread)")


@pytest.mark.door
def test_where_patterns_match_is_told_in_characters() -> None:
    box = Box.parse('"b" /é/')
    assert box.spans(["aébb"]) == [[(1, 2), (2, 3), (3, 4)]]
