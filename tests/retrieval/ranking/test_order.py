"""The order of passages."""

from hypothesis import given
from hypothesis import strategies as st

from apps.retrieval.ranking import Passage, Passages, RankingQuery, rank
from apps.retrieval.ranking.rank import MAX_PER_FILE

QUESTION = RankingQuery.of("how calls are retried")


def order(*passages: Passage, question: RankingQuery = QUESTION) -> list[int]:
    return rank(question, Passages.of(passages))


def test_better_passages_come_first() -> None:
    assert order(
        Passage("r", "a.py", "", 0.1, 0.0),
        Passage("r", "b.py", "", 0.9, 5.0),
        Passage("r", "c.py", "", 0.5, 2.0),
    ) == [1, 2, 0]


def test_other_files_come_before_a_files_second_passage() -> None:
    assert order(
        Passage("r", "a.py", "", 0.9, 9.0),
        Passage("r", "a.py", "", 0.8, 8.0),
        Passage("r", "b.py", "", 0.6, 3.0),
        Passage("r", "c.py", "", 0.5, 2.0),
    ) == [0, 2, 3, 1]


def test_a_file_has_at_most_two_passages() -> None:
    assert order(*[Passage("r", "a.py", "", i / 10, 0.0) for i in range(5)]) == [4, 3]


def test_ties_keep_their_order() -> None:
    same = [Passage("r", f"{name}.py", "", 0.5, 1.0) for name in "cab"]
    assert order(*same) == [0, 1, 2]


def test_the_definition_comes_before_its_uses_and_tests() -> None:
    found = order(
        Passage("r", "src/app.py", "run", 0.80, 6.0),
        Passage("r", "tests/test_retry.py", "RetryPolicy", 0.85, 7.0),
        Passage("r", "src/retry.py", "RetryPolicy", 0.80, 6.0),
        question=RankingQuery.of("RetryPolicy"),
    )
    assert found[0] == 2


def test_roots_with_and_without_words_are_ranked_together() -> None:
    found = order(
        Passage("with", "a.py", "", 0.2, 3.0),
        Passage("with", "b.py", "", 0.3, 0.0),
        Passage("without", "c.py", "", 0.9, None),
    )
    assert found[0] == 2


def test_no_passages_have_an_empty_order() -> None:
    assert order() == []


passages = st.builds(
    Passage,
    root=st.integers(0, 2),
    path=st.sampled_from(["a.py", "b/v1/c.h", "b/v2/c.c", "tests/d.md", "", "é/__init__.py"]),
    names=st.lists(st.sampled_from(["retry", "Calls", "", "日本"]), max_size=3).map(" ".join),
    similarity=st.none() | st.floats(-1, 1),
    words=st.none() | st.floats(0, 100),
    evidence=st.sampled_from([0.0, 1.0, 2.5]),
)


@given(st.lists(passages, max_size=12))
def test_each_passage_is_ranked_once_and_each_file_at_most_twice(found: list[Passage]) -> None:
    got = order(*found)
    assert len(set(got)) == len(got)
    files = [(found[i].root, found[i].path) for i in got]
    assert all(files.count(file) <= MAX_PER_FILE for file in files)
    assert {(p.root, p.path) for p in found} == set(files)


def test_passages_with_more_evidence_come_first() -> None:
    similar = Passage("r", "src/poll.c", "uv__poll_io", 0.9, 9.0)
    user = Passage("r", "src/linux.c", "", 0.9, 9.0)
    holds = Passage("r", "src/unix.c", "", 0.1, 1.0, evidence=1.0)
    defines = Passage("r", "src/linux.c", "uv__io_poll", 0.1, 1.0, evidence=2.0)
    assert order(similar, user, holds, defines)[:2] == [3, 2]
