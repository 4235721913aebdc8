"""Properties of the limits for any rows. test_rules.py has the rules one by one."""

import math
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apps.retrieval import results
from apps.retrieval.candidates import MatchedBy
from apps.retrieval.results import Match

SCORES = st.none() | st.sampled_from([0.0, 0.2, 0.2, 1.0, 1.4, 1.5, 3.9])

MATCHED_BY: tuple[MatchedBy, ...] = ("vector", "words", "both")


@st.composite
def rows(draw: st.DrawFn) -> list[Match]:
    """Up to 20 rows over few files, ids and texts, so that they collide."""
    made = []
    for _ in range(draw(st.integers(0, 20))):
        path = draw(st.sampled_from(["a.py", "b/c.py", ""]))
        repo = draw(st.sampled_from(["one", "two", ""]))
        made.append(
            Match(
                repo=repo,
                rel_path=path,
                container_path=f"/src/{repo}/{path}",
                host_path=draw(st.sampled_from(["", f"/host/{repo}/{path}"])),
                host_path_warning=draw(st.sampled_from([None, "unmapped"])),
                chunk=draw(st.text(alphabet="ab\n", max_size=6) | st.just("long " * 30)),
                chunk_id=draw(st.sampled_from(["1", "2", "3", "4", "5"])),
                model_id="m",
                score=draw(SCORES),
                matched_by=draw(st.sampled_from(MATCHED_BY)),
            )
        )
    return made


Limits = dict[str, Any]  # the arguments of `apply_limits`
LIMITS: st.SearchStrategy[Limits] = st.fixed_dictionaries(
    {
        "cutoff": st.none() | st.sampled_from([0.0, 0.2, 1.4]),
        "fallback": st.integers(1, 4),
        "chunk_chars": st.integers(1, 200),
        "total_chars": st.integers(1, 400),
        "ranked": st.booleans(),
    }
)


def source_of(row: Match, among: list[Match]) -> int:
    """The first row that `row` was cut from."""
    return next(
        i
        for i, whole in enumerate(among)
        if replace(whole, chunk="") == replace(plain(row), chunk="")
        and whole.chunk.startswith(row.chunk)
    )


def plain(row: Match) -> Match:
    """The match as it was before its lines were counted, and before it was marked as weak."""
    return replace(row, line_count=None, is_weak=False)


@given(rows(), LIMITS)
def test_every_match_is_a_candidate_at_most_cut(given_rows: list[Match], limits: Limits) -> None:
    matches = results.apply_limits(given_rows, **limits)
    for match in matches:
        source_of(match, given_rows)
        assert len(match.chunk) <= limits["chunk_chars"]


@given(rows(), LIMITS)
def test_order_is_kept(given_rows: list[Match], limits: Limits) -> None:
    distinct = [replace(row, chunk_id=str(i)) for i, row in enumerate(given_rows)]
    matches = results.apply_limits(distinct, **limits)
    order = [(rank(match, limits), int(match.chunk_id)) for match in matches]
    assert order == sorted(set(order))


def rank(match: Match, limits: Limits) -> float:
    """The key of a match's place: the fallback of a ranked search comes nearest first."""
    return match.distance if match.is_weak and limits["ranked"] else 0


@given(rows(), LIMITS)
def test_the_text_never_passes_the_total_cap(given_rows: list[Match], limits: Limits) -> None:
    matches = results.apply_limits(given_rows, **limits)
    assert sum(len(match.chunk) for match in matches) <= limits["total_chars"]


@given(rows(), LIMITS)
def test_a_file_has_at_most_two_distinct_matches(given_rows: list[Match], limits: Limits) -> None:
    matches = results.apply_limits(given_rows, **limits | {"chunk_chars": 1000})
    for bucket in {(match.repo, match.rel_path) for match in matches}:
        mine = [match for match in matches if (match.repo, match.rel_path) == bucket]
        assert len(mine) <= 2
        assert len({match.chunk_id for match in mine}) == len(mine)
        assert len({match.chunk for match in mine}) == len(mine)


@given(rows(), LIMITS)
def test_beyond_the_cutoff_there_is_only_the_fallback(
    given_rows: list[Match], limits: Limits
) -> None:
    matches = results.apply_limits(given_rows, **limits)
    cutoff = limits["cutoff"]
    if cutoff is None:
        return

    def passes(row: Match) -> bool:
        near = row.score is not None and row.score <= cutoff
        words_alone = row.score is None and row.matched_by in ("words", "both")
        return near or words_alone or row.has_evidence

    if any(map(passes, given_rows)):
        assert all(map(passes, matches))
    else:
        assert len(matches) <= limits["fallback"]


@given(rows(), LIMITS)
def test_a_result_is_not_empty_if_one_match_fits(given_rows: list[Match], limits: Limits) -> None:
    matches = results.apply_limits(given_rows, **limits | {"total_chars": 100_000})
    assert bool(matches) == bool(given_rows)


@given(rows(), LIMITS)
def test_the_summary_by_file_agrees_with_the_matches(
    given_rows: list[Match], limits: Limits
) -> None:
    matches = results.apply_limits(given_rows, **limits)
    files = results.by_file(matches)
    assert [f["hostPath"] for f in files] == sorted({m.host_path for m in matches if m.host_path})
    for summary in files:
        mine = [match for match in matches if match.host_path == summary["hostPath"]]
        assert summary["chunkCount"] == len(mine)
        assert summary["lineCount"] == sum(match.line_count or 0 for match in mine)
        nearest = min((m.score for m in mine if m.score is not None), default=math.inf)
        assert (math.inf if summary["highestMatch"] is None else summary["highestMatch"]) == nearest


@given(rows(), LIMITS)
def test_applying_limits_twice_changes_nothing(given_rows: list[Match], limits: Limits) -> None:
    limits |= {"chunk_chars": 1000}
    matches = results.apply_limits(given_rows, **limits)
    assert results.apply_limits([plain(match) for match in matches], **limits) == matches
