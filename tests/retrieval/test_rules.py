"""The rules of docs/retrieval.md, each over HTTP: POST /tools/vector-search."""

import logging
import math
from hashlib import sha256
from uuid import uuid4

import pytest

from apps.embedding.static import MODEL_ID
from tests.retrieval.conftest import Ask, Shelf

pytestmark = pytest.mark.django_db


def texts(answer: dict) -> list[str]:
    return [result["chunk"] for result in answer["results"]]


# --- candidates -----------------------------------------------------------------------------------


def test_rows_come_in_the_order_of_the_index(shelf: Shelf, ask: Ask) -> None:
    for distance, path in [(0.5, "z.py"), (0.2, "y.py"), (0.9, "x.py")]:
        shelf.put(distance, path, text=path)
    assert texts(ask()) == ["z.py", "y.py", "x.py"]


def test_several_roots_are_merged_by_distance(shelf: Shelf, ask: Ask) -> None:
    shelf.put(0.2, "a.py", repo="one", text="1a")
    shelf.put(0.6, "b.py", repo="one", text="1b")
    shelf.put(0.1, "a.py", repo="two", text="2a")
    shelf.put(0.4, "b.py", repo="two", text="2b")
    assert texts(ask()) == ["2a", "1a", "2b", "1b"]


def test_ties_are_ordered_by_root_and_position(shelf: Shelf, ask: Ask) -> None:
    for repo in ("one", "two"):
        for path in ("b.py", "a.py"):
            shelf.put(0.5, path, repo=repo, text=f"{repo}/{path}")
    # "two" was ingested last, so it is listed first.
    assert texts(ask()) == ["two/b.py", "two/a.py", "one/b.py", "one/a.py"]


def test_the_limit_is_applied_before_the_cutoff(shelf: Shelf, ask: Ask) -> None:
    shelf.put(2.0, "far.py")
    shelf.put(0.1, "near.py", text="near")
    assert texts(ask(limit=1)) != ["near"]


@pytest.mark.fault("The server is killed during an ingest")
def test_rows_of_files_that_are_not_live_are_dropped(shelf: Shelf, ask: Ask) -> None:
    shelf.put(0.1, "new.py", file=shelf.file("new.py", since=2), text="unpublished")
    shelf.put(0.2, "old.py", file=shelf.file("old.py", since=0, until=1), text="replaced")
    shelf.put(0.3, "a.py", text="live")
    assert texts(ask()) == ["live"]


def test_requests_widen_until_the_limit_is_reached(shelf: Shelf, ask: Ask) -> None:
    dead = shelf.file("dead.py", since=2)
    for _ in range(60):
        shelf.put(0.1, "dead.py", file=dead)
    for i in range(3):
        shelf.put(0.2, f"{i}.py", text=f"live {i}")
    assert texts(ask(limit=2)) == ["live 0", "live 1"]
    assert shelf.requested == [4, 20, 100]


def test_requests_stop_when_a_root_has_no_more_rows(shelf: Shelf, ask: Ask) -> None:
    shelf.put(0.1)
    ask(limit=5)
    assert shelf.requested == [10]


# --- score source ---------------------------------------------------------------------------------


def score_lines(caplog: pytest.LogCaptureFixture) -> list[dict]:
    records = [r for r in caplog.records if r.getMessage() == "vector search score source"]
    return [record.context for record in records]


def test_the_score_source_is_logged_once_a_query(
    shelf: Shelf, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.put(0.25, "a.py")
    shelf.put(None, "b.py")
    shelf.put(3.0, "c.py")
    with caplog.at_level(logging.INFO, "codeinfo.retrieval"):
        ask()
    assert score_lines(caplog) == [
        {
            "tool": "VectorSearch",
            "scoreSource": "distances",
            "scoreCount": 2,
            "scoreMin": 0.25,
            "scoreMax": 3.0,
        }
    ]


def test_without_scores_the_source_is_none_and_there_is_no_range(
    shelf: Shelf, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.put(None)
    with caplog.at_level(logging.INFO, "codeinfo.retrieval"):
        ask()
    assert score_lines(caplog) == [{"tool": "VectorSearch", "scoreSource": "none", "scoreCount": 0}]


# --- cutoff and fallback --------------------------------------------------------------------------


def test_the_cutoff_keeps_distances_up_to_and_including_it(shelf: Shelf, ask: Ask) -> None:
    shelf.put(1.4, "a.py", text="at")
    shelf.put(1.4000001, "b.py", text="beyond")
    assert texts(ask()) == ["at"]


def test_a_row_without_a_score_does_not_pass_the_cutoff(shelf: Shelf, ask: Ask) -> None:
    shelf.put(None, "a.py", text="unknown")
    shelf.put(0.3, "b.py", text="near")
    assert texts(ask()) == ["near"]


def test_the_cutoff_setting_is_read_at_each_call(shelf: Shelf, ask: Ask, configure) -> None:
    shelf.put(0.0, "a.py", text="same")
    shelf.put(0.7, "b.py", text="near")
    assert texts(ask()) == ["same", "near"]
    configure(retrieval_cutoff=0.5)
    assert texts(ask()) == ["same"]
    configure(retrieval_cutoff=0.0)
    assert texts(ask()) == ["same"]


def test_a_disabled_cutoff_keeps_all_rows_scored_or_not(shelf: Shelf, ask: Ask, configure) -> None:
    configure(retrieval_cutoff_disabled=True)
    shelf.put(3.9, "a.py", text="far")
    shelf.put(None, "b.py", text="unknown")
    assert texts(ask()) == ["far", "unknown"]


def test_the_fallback_is_the_nearest_rows_in_their_own_order(shelf: Shelf, ask: Ask) -> None:
    for distance, name in [(3.0, "a"), (1.9, "b"), (2.5, "c"), (1.8, "d")]:
        shelf.put(distance, f"{name}.py", text=name)
    assert texts(ask()) == ["b", "d"]


def test_the_fallback_takes_ties_in_order_and_rows_without_a_score_last(
    shelf: Shelf, ask: Ask
) -> None:
    for distance, name in [(None, "a"), (2.0, "b"), (2.0, "c"), (2.0, "d")]:
        shelf.put(distance, f"{name}.py", text=name)
    assert texts(ask()) == ["b", "c"]


def test_one_row_within_the_cutoff_disables_the_fallback(shelf: Shelf, ask: Ask) -> None:
    shelf.put(1.0, "a.py", text="near")
    shelf.put(1.5, "b.py", text="far")
    assert texts(ask()) == ["near"]


def test_the_fallback_setting_is_read_at_each_call(shelf: Shelf, ask: Ask, configure) -> None:
    for name in "abc":
        shelf.put(2.0, f"{name}.py", text=name)
    configure(retrieval_fallback_chunks=1)
    assert texts(ask()) == ["a"]
    configure(retrieval_fallback_chunks=3)
    assert texts(ask()) == ["a", "b", "c"]


def test_without_any_score_the_first_rows_are_the_fallback(shelf: Shelf, ask: Ask) -> None:
    for name in "abc":
        shelf.put(None, f"{name}.py", text=name)
    answer = ask()
    assert texts(answer) == ["a", "b"]
    assert [result["score"] for result in answer["results"]] == [None, None]
    assert [file["highestMatch"] for file in answer["files"]] == [None, None]


def test_a_fallback_of_two_may_be_one_after_duplicates(shelf: Shelf, ask: Ask) -> None:
    shelf.put(2.0, text="the same")
    shelf.put(2.1, text="the same")
    assert [result["score"] for result in ask()["results"]] == [2.0]


# --- duplicates -----------------------------------------------------------------------------------


def fill_file(shelf: Shelf, texts_of: dict[int, tuple[float, str]]) -> None:
    """A file of eleven chunks, of which some have a distance and a text, and the others are far
    away. The hash of a chunk is that of path, index and text one after another, so "0 x" has the
    same as chunk 1 as " x" as chunk 10."""
    for index in range(11):
        distance, text = texts_of.get(index, (9.0, None))
        shelf.put(distance, text=text)


def test_the_same_id_in_one_file_counts_once(shelf: Shelf, ask: Ask) -> None:
    fill_file(shelf, {1: (0.1, "0 x"), 10: (0.2, " x")})
    assert texts(ask(limit=20)) == ["0 x"]


def test_the_same_text_in_one_file_counts_once(shelf: Shelf, ask: Ask) -> None:
    shelf.put(0.1, text="the same")
    shelf.put(0.2, text="the same")
    assert [result["score"] for result in ask()["results"]] == [0.1]


def test_a_dropped_duplicate_does_not_hide_other_rows(shelf: Shelf, ask: Ask) -> None:
    fill_file(shelf, {0: (0.1, "0 x"), 1: (0.2, "0 x"), 10: (0.3, " x")})
    # The second row was dropped for its text, so its id has not been given yet.
    assert texts(ask(limit=20)) == ["0 x", " x"]


def test_duplicates_in_other_files_and_repositories_stay(shelf: Shelf, ask: Ask) -> None:
    shelf.put(0.1, "a.py", "the same", repo="one")
    shelf.put(0.2, "b.py", "the same", repo="one")
    shelf.put(0.3, "a.py", "the same", repo="two")
    assert len(texts(ask())) == 3


def test_duplicates_are_compared_before_the_cut(shelf: Shelf, ask: Ask, configure) -> None:
    configure(tool_chunk_max_chars=3)
    shelf.put(0.1, text="abc one")
    shelf.put(0.2, text="abc two")
    assert [result["chunk"] for result in ask()["results"]] == ["abc", "abc"]


def test_a_file_gives_its_two_nearest_in_their_own_order(shelf: Shelf, ask: Ask) -> None:
    for distance, name in [(0.9, "a"), (0.2, "b"), (None, "c"), (0.1, "d")]:
        shelf.put(distance, text=name)
    assert texts(ask()) == ["b", "d"]


def test_ties_in_one_file_keep_the_earlier_rows(shelf: Shelf, ask: Ask, configure) -> None:
    configure(retrieval_cutoff_disabled=True)
    for name in "abc":
        shelf.put(None, text=name)
    assert texts(ask()) == ["a", "b"]


@pytest.mark.parametrize(("cutoff", "count"), [(1.4, 20), (0.0, 5)])
def test_two_of_a_file_do_not_take_the_places_of_other_files(
    shelf: Shelf, ask: Ask, configure, cutoff: float, count: int
) -> None:
    configure(retrieval_cutoff=cutoff, retrieval_fallback_chunks=5)
    for n in range(60):
        shelf.put(0.1 + n / 1_000, "large.py", text=f"large {n}")
    for n in range(30):
        shelf.put(0.2 + n / 1_000, f"{n}.py", text=f"other {n}")
    expected = ["large 0", "large 1", *(f"other {n}" for n in range(18))]
    assert texts(ask(limit=20)) == expected[:count]


# --- caps -----------------------------------------------------------------------------------------


def test_a_chunk_is_cut_to_its_cap_and_its_lines_counted_after(
    shelf: Shelf, ask: Ask, configure
) -> None:
    configure(tool_chunk_max_chars=5)
    shelf.put(0.1, text="ab\ncd\nef")
    [result] = ask()["results"]
    assert (result["chunk"], result["lineCount"]) == ("ab\ncd", 2)


def test_the_total_cap_stops_at_the_first_row_that_exceeds_it(
    shelf: Shelf, ask: Ask, configure
) -> None:
    configure(tool_max_chars=10)
    for name, length in [("a", 6), ("b", 5), ("c", 1)]:
        shelf.put(0.1, f"{name}.py", name * length)
    assert texts(ask()) == ["aaaaaa"]


def test_a_total_that_is_just_reached_is_within_the_cap(shelf: Shelf, ask: Ask, configure) -> None:
    configure(tool_max_chars=10)
    shelf.put(0.1, "a.py", "aaaaa")
    shelf.put(0.1, "b.py", "bbbbb")
    assert texts(ask()) == ["aaaaa", "bbbbb"]


@pytest.mark.door
def test_the_caps_may_leave_nothing(shelf: Shelf, ask: Ask, configure) -> None:
    configure(tool_max_chars=3)
    shelf.put(0.1, text="four")
    answer = ask()
    assert (answer["results"], answer["files"]) == ([], [])


def test_the_total_counts_the_text_after_the_cut(shelf: Shelf, ask: Ask, configure) -> None:
    configure(tool_max_chars=6, tool_chunk_max_chars=3)
    shelf.put(0.1, "a.py", "aaaaaa")
    shelf.put(0.1, "b.py", "bbbbbb")
    assert texts(ask()) == ["aaa", "bbb"]


def test_caps_count_characters_not_bytes(shelf: Shelf, ask: Ask, configure) -> None:
    configure(tool_chunk_max_chars=2)
    shelf.put(0.1, text="😀😀😀")
    assert ask()["results"][0]["chunk"] == "😀😀"


def test_an_empty_text_has_no_characters_and_no_lines(shelf: Shelf, ask: Ask) -> None:
    shelf.put(0.1, text="")
    [result] = ask()["results"]
    assert (result["chunk"], result["lineCount"]) == ("", 0)


# --- files[] --------------------------------------------------------------------------------------


def test_files_have_their_smallest_distance(shelf: Shelf, ask: Ask) -> None:
    shelf.put(0.4, "b.py", "one\ntwo")
    shelf.put(0.3, "b.py", "three")
    shelf.put(0.5, "a.py", "four")
    assert ask()["files"] == [
        {
            "hostPath": "/src/repo/a.py",
            "highestMatch": 0.5,
            "chunkCount": 1,
            "lineCount": 1,
            "repo": "repo",
            "modelId": MODEL_ID,
        },
        {
            "hostPath": "/src/repo/b.py",
            "highestMatch": 0.3,
            "chunkCount": 2,
            "lineCount": 3,
            "repo": "repo",
            "modelId": MODEL_ID,
        },
    ]


def test_files_are_those_of_the_capped_rows_only(shelf: Shelf, ask: Ask, configure) -> None:
    configure(tool_max_chars=4)
    shelf.put(0.4, "b.py", "four")
    shelf.put(0.1, "b.py", "more")
    shelf.put(0.1, "a.py", "more")
    assert [(f["hostPath"], f["highestMatch"]) for f in ask()["files"]] == [("/src/repo/b.py", 0.4)]


def test_files_are_sorted_by_code_point(shelf: Shelf, ask: Ask) -> None:
    for path in ("b.py", "É.py", "B.py", "a.py"):
        shelf.put(0.1, path)
    names = [file["hostPath"].rpartition("/")[2] for file in ask()["files"]]
    assert names == ["B.py", "a.py", "b.py", "É.py"]


def test_an_unmapped_host_path_has_a_warning_in_results_and_files(
    shelf: Shelf, ask: Ask, configure
) -> None:
    configure(in_container=True)
    shelf.put(0.1)
    answer = ask()
    text = "HOST_INGEST_DIR not set; using container path base"
    assert answer["results"][0]["hostPathWarning"] == text
    assert answer["files"][0]["hostPathWarning"] == text


# --- shape and edges ------------------------------------------------------------------------------


def test_a_result_has_exactly_these_fields(shelf: Shelf, ask: Ask, configure) -> None:
    configure(host_ingest_dir="/home/me/src")
    root = shelf.root("deep", path="/data/group/deep")
    shelf.put(
        0.5, "lib/a.py", "x = 1", repo="deep", start_line=7, end_line=7, symbol="A.b",
        language="python",
    )  # fmt: skip
    assert root.name == "deep"
    assert ask()["results"] == [
        {
            "repo": "deep",
            "relPath": "lib/a.py",
            "containerPath": "/data/group/deep/lib/a.py",
            "hostPath": "/home/me/src/group/deep/lib/a.py",
            "score": 0.5,
            "chunk": "x = 1",
            "chunkId": sha256(b"lib/a.py0x = 1").hexdigest(),
            "modelId": MODEL_ID,
            "lineCount": 1,
            "startLine": 7,
            "endLine": 7,
            "matchedBy": "vector",
            "symbol": "A.b",
            "language": "python",
        }
    ]


def test_no_rows_give_an_empty_result(shelf: Shelf, ask: Ask) -> None:
    shelf.root()
    answer = ask()
    assert (answer["results"], answer["files"], answer["modelId"]) == ([], [], MODEL_ID)
    assert answer["hint"].startswith("Nothing came close.")


@pytest.mark.parametrize("distance", [math.nan, math.inf, -math.inf])
def test_a_distance_that_is_not_finite_is_null(shelf: Shelf, ask: Ask, distance: float) -> None:
    shelf.put(distance)
    assert ask()["results"][0]["score"] is None


def test_a_row_of_no_file_is_dropped(shelf: Shelf, ask: Ask) -> None:
    """Its file was deleted, or has fewer chunks."""
    file = shelf.file("a.py")
    shelf.put(0.2, file=file, text="whole")
    shelf.rows[shelf.root().id] += [(f"{file.id}:1", 0.1), (f"{uuid4()}:0", 0.1), ("any", 0.1)]
    assert texts(ask()) == ["whole"]
