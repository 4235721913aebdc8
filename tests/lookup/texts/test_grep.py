"""POST /tools/grep: the lines that match a pattern."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pytest

from apps.core.concurrency.computed import TimedOut
from apps.core.errors import Unavailable
from apps.index.grams import Segment, get_grams, required_by, reset_grams
from apps.index.grams import store as grams_store
from apps.index.models import Root
from apps.index.texts import TextStore, get_texts, store
from apps.lookup.texts import batches, finding, hits, table
from apps.lookup.texts.grep_query import GrepQuery
from apps.lookup.texts.patterns import Pattern
from tests.lookup.texts.conftest import Post

pytestmark = [pytest.mark.door, pytest.mark.django_db, pytest.mark.usefixtures("harbour")]

Rows = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def lines(post: Post) -> Callable[..., list[str]]:
    """lines(pattern=…) are `path:line text` of the answer's rows, in order."""

    def found(**body: Any) -> list[str]:
        status, answer = post("grep", **body)
        assert status == 200, answer
        return [f"{r['relPath']}:{r['startLine']} {r['chunk'].strip()}" for r in answer["results"]]

    return found


def test_definitions_of_the_identifier_come_first_then_lines_by_path(lines) -> None:
    found = lines(pattern=r"\bmoor\b", repository="harbour")
    assert found[:2] == [
        "src/harbour/ships.py:1 def moor(ship, seconds):",
        "src/harbour/client.py:11 def moor(self, ship: str) -> bool:",
    ]
    rest = [each.partition(" ")[0] for each in found[2:]]
    paths = [each.partition(":")[0] for each in rest]
    assert paths == sorted(paths) and len(set(found)) == len(found)
    assert "docs/guide.md:5" in rest and "src/harbour/client.py:3" in rest


def test_a_hit_has_line_symbol_and_generation(post: Post) -> None:
    _, answer = post("grep", pattern="return moor(ship", fixed=True)
    (row,) = answer["results"]
    assert row["symbol"] == "Client.moor" and row["kind"] == "match"
    assert (row["repo"], row["startLine"], row["endLine"]) == ("harbour", 15, 15)
    assert row["chunk"] == "        return moor(ship, TIMEOUT)"
    assert answer["generations"] == {"harbour": 1} and answer["truncated"] is False


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"pattern": "crane", "ignore_case": True}, ["lib/crane.rs:1", "lib/crane.rs:3"]),
        ({"pattern": "crane"}, []),
        ({"pattern": "Ship)", "fixed": True, "path": "*.ts"}, ["web/ship.ts:3"]),
        ({"pattern": "Ship", "word": True, "language": "sql"}, []),
        ({"pattern": "ship", "word": True, "language": "sql"}, ["db/ships.sql:2"]),
        ({"pattern": r"^\s*length\b"}, ["src/harbour/ships.py:10"]),
        ({"pattern": r"int\).$", "path": "db/"}, ["db/ships.sql:1"]),
        ({"pattern": r"SELECT|CREATE"}, ["db/ships.sql:1", "db/ships.sql:3"]),
        ({"pattern": "x" * 999}, []),
    ],
)
def test_options(lines, options: dict[str, Any], expected: list[str]) -> None:
    assert [each.partition(" ")[0] for each in lines(**options)] == expected


def test_a_match_of_several_lines_needs_multiline(post: Post) -> None:
    pattern = r"struct\{\}\n\nfunc"
    status, answer = post("grep", pattern=pattern)
    assert status == 400 and answer["error"] == "BAD_PATTERN" and "multiline" in answer["message"]
    _, answer = post("grep", pattern=pattern, multiline=True)
    (row,) = answer["results"]
    assert (row["startLine"], row["endLine"]) == (4, 6)
    assert row["chunk"].startswith("type Ship struct{}\n\nfunc (s *Ship)")


def test_context_lines_stand_around_a_match_and_none_twice(post: Post) -> None:
    _, answer = post("grep", pattern="TIMEOUT", context=2, repository="harbour")
    numbers = [
        number
        for row in answer["results"]
        for number in range(
            row["startLine"] - len(row.get("before", ())),
            row["endLine"] + len(row.get("after", ())) + 1,
        )
    ]
    assert sorted(numbers) == [3, 4, 5, 6, 7, 13, 14, 15, 16, 17]
    assert answer["results"][0]["before"] == ["from harbour.ships import moor", ""]


def test_files_and_counts(post: Post) -> None:
    _, answer = post("grep", pattern="berth", mode="files")
    assert [row["relPath"] for row in answer["results"]] == ["db/ships.sql"]
    _, answer = post("grep", pattern="moor", mode="count", repository="harbour")
    counts = {row["relPath"]: row["count"] for row in answer["results"]}
    assert counts == {
        "docs/guide.md": 1,
        "src/harbour/client.py": 7,
        "src/harbour/ships.py": 2,
        "tests/test_ships.py": 3,
    }
    assert (answer["files"], answer["lines"]) == (4, 13)


def test_more_lines_follow_with_the_cursor_and_still_with_an_offset(post: Post, lines) -> None:
    every = lines(pattern="moor")
    _, first = post("grep", pattern="moor", limit=3)
    assert first["truncated"] and "nextCursor" in first["hint"]
    start = lines(pattern="moor", limit=3)
    assert start + lines(pattern="moor", cursor=first["nextCursor"]) == every
    assert start + lines(pattern="moor", offset=3) == every
    _, second = post("grep", pattern="moor", limit=2, offset=3)
    assert lines(pattern="moor", cursor=second["nextCursor"], offset=3) == every[5:]


def killed_after_three(*arguments: Any) -> Iterator[batches.Batch]:
    """Read three files, and be killed at the deadline if there are more."""
    files = batches.read(*arguments)
    yield from islice(files, 3)
    if next(files, None) is not None:
        raise TimedOut("over")


@pytest.mark.parametrize("mode", ["content", "files", "count"])
def test_a_search_that_was_stopped_continues_where_it_stopped(
    post: Post, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    query = {"pattern": r"^.", "mode": mode, "limit": 500}
    _, whole = post("grep", **query)
    monkeypatch.setattr(batches, "FIRST_FILES", 1)
    monkeypatch.setattr(batches, "MOST_FILES", 1)
    monkeypatch.setattr(finding, "read", killed_after_three)
    rows: list[dict[str, Any]] = []
    cursor, pages = None, 0
    while cursor != "":
        _, answer = post("grep", **query, cursor=cursor)
        rows, cursor, pages = rows + answer["results"], answer.get("nextCursor", ""), pages + 1
        read = f"Stopped after {3 * pages} of 10 files"
        assert answer["stopped"].startswith(read) if cursor else "stopped" not in answer
    assert (rows, pages) == (whole["results"], 4)


def test_the_totals_of_all_files_are_on_the_first_page(post: Post) -> None:
    query = {"pattern": "moor", "mode": "count", "repository": "harbour", "limit": 3}
    _, first = post("grep", **query)
    _, last = post("grep", **query, cursor=first["nextCursor"])
    assert (first["files"], first["lines"], len(first["results"])) == (4, 13, 3)
    assert len(last["results"]) == 1 and not {"files", "lines", "nextCursor"} & set(last)


def test_texts_that_a_merge_has_moved_are_looked_up_again_once(
    lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, before = get_texts(), lines(pattern="moor")
    monkeypatch.setattr(store, "MAX_SMALL", 1)
    texts.collect(lambda keys: keys)
    moves = texts.moves
    assert lines(pattern="moor") == before
    after = texts.moves
    assert after > moves
    assert lines(pattern="moor") == before and texts.moves == after


def test_a_long_line_is_cut_around_the_match() -> None:
    line = "a" * 1_000 + "needle" + "b" * 1_000
    cut = hits.cut_line(line, 1_000)
    assert "needle" in cut and cut.startswith("…a") and cut.endswith("b…") and len(cut) < 310


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a(?=b)", "lookahead"),
        (r"(a)\1", "backreferences"),
        ("a(b", "as plain text (fixed)"),
        ("a)(b", "as plain text (fixed)"),
        (r"(\w{1,900}){900}", "repetition"),
    ],
)
def test_an_unusable_pattern_is_refused_with_what_to_do(
    post: Post, pattern: str, words: str
) -> None:
    status, answer = post("grep", pattern=pattern)
    assert (status, answer["error"]) == (400, "BAD_PATTERN")
    assert words in answer["message"]


def test_wrong_arguments_are_all_named(post: Post) -> None:
    body = {"pattern": "", "mode": "all", "fixed": "yes", "context": "x", "path": "/etc"}
    status, answer = post("grep", **body)
    assert status == 400
    assert answer["details"] == [
        "pattern is required",
        "fixed must be true or false",
        "mode must be content, files, count",
        "context must be an integer",
        "path must be relative to the repository",
    ]
    assert post("grep", pattern="x" * 1_001)[0] == 400


def test_a_search_that_takes_too_long_says_how_far_it_came(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "SECONDS", -1)
    _, answer = post("grep", pattern=".")
    assert answer["results"] == [] and answer["truncated"]
    assert answer["stopped"].startswith("Stopped after 0 of 10 files")


def test_without_n_grams_all_files_are_read_and_the_answer_says_so(post: Post) -> None:
    expected = post("grep", pattern="berth")[1]["results"]
    assert expected and "slow" not in post("grep", pattern="berth")[1]
    kept = {each.path: each.path.read_bytes() for each in get_grams().segments()}
    try:
        for path in kept:
            path.unlink()
        _, answer = post("grep", pattern="berth")
        assert answer["results"] == expected
        assert answer["slow"] == "10 files without n-grams were read one by one."
    finally:
        for path, data in kept.items():
            path.write_bytes(data)
        reset_grams()


@pytest.mark.parametrize("options", [{}, {"mode": "count"}, {"context": 2}])
def test_answers_do_not_depend_on_pieces_and_batches(
    post: Post, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    patterns = [
        *[{"pattern": text} for text in ("moor.*ship", r"^\s+return", "ship$", "TIMEOUT|berth")],
        *[
            {"pattern": text, "multiline": True}
            for text in (r"\n\s*return", r"\):\n.*ship", "(?s:e.*n)")
        ],
        {"pattern": "ship", "word": True},
        {"pattern": "  return moor", "fixed": True},
    ]
    expected = [post("grep", **each, **options)[1]["results"] for each in patterns]
    written = {each.path: each.path.read_bytes() for each in get_grams().segments()}
    try:
        for path in written:
            path.unlink()
        monkeypatch.setattr(grams_store, "PIECE_BYTES", 40)
        monkeypatch.setattr(batches, "FIRST_FILES", 1)
        monkeypatch.setattr(batches, "MOST_FILES", 2)
        get_grams().maintain(get_texts())
        assert max(each.pieces - each.texts for each in get_grams().segments()) > 5
        assert [post("grep", **each, **options)[1]["results"] for each in patterns] == expected
        assert all(expected)
    finally:
        for each in get_grams().segments():
            each.path.unlink()
        for path, data in written.items():
            path.write_bytes(data)
        reset_grams()


def test_reading_ahead_ends_with_the_page_and_reports_errors(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "FIRST_FILES", 1)
    monkeypatch.setattr(batches, "MOST_FILES", 1)
    read = list[int]()
    whole = batches.read_texts

    def counted(batch: Sequence[batches.Candidate]) -> dict[str, bytes]:
        read.append(len(batch))
        if len(read) > 2 and fails:
            raise Unavailable("The text store failed", code="TEXTS_UNAVAILABLE")
        return whole(batch)

    monkeypatch.setattr(batches, "read_texts", counted)
    fails = False
    _, answer = post("grep", pattern="i", limit=1)
    assert len(answer["results"]) == 1 and len(read) == 1
    read.clear()
    fails = True
    status, answer = post("grep", pattern="i", limit=500)
    assert (status, answer["error"]) == (503, "TEXTS_UNAVAILABLE")


def test_a_damaged_segment_counts_as_missing(post: Post) -> None:
    expected = post("grep", pattern="berth")[1]["results"]
    written = {each.path: each.path.read_bytes() for each in get_grams().segments()}
    try:
        for path, data in written.items():
            path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        reset_grams()
        _, answer = post("grep", pattern="berth")
        assert answer["results"] == expected and "n-grams" in answer["slow"]
    finally:
        for path, data in written.items():
            path.write_bytes(data)
        reset_grams()


def test_a_filter_that_leaves_no_file_is_named(post: Post) -> None:
    _, answer = post("grep", pattern="moor", path="srx/")
    assert answer["results"] == [] and "No file of" in answer["hint"]


def test_after_many_places_of_texts_all_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "LOOKED_UP", 2)
    files = table.file_table(Root.objects.get(name="harbour"))
    keys, hashes = files.key_of, [file.sha256 for file in files.files]
    stored = get_texts().places(hashes)
    expected = [[*stored[key].block, stored[key].start, stored[key].size] for key in hashes]
    places = table.KnownPlaces(files.keys)
    for some in (slice(3), slice(3, 5)):
        assert places.of(get_texts(), keys[some]).tolist() == expected[some]
    with monkeypatch.context() as patch:
        patch.setattr(TextStore, "places", None)  # nothing is looked up any more
        assert places.of(get_texts(), keys).tolist() == expected


def test_n_grams_of_other_repositories_are_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    files = table.file_table(Root.objects.get(name="harbour"))
    segments = get_grams().segments()
    own = [each for each in segments if {file.sha256 for file in files.files} & each.hex_keys]
    asked: list[Segment] = []
    look_up = Segment.matching

    def matching(segment: Segment, *arguments: Any, **options: Any) -> Any:
        asked.append(segment)
        return look_up(segment, *arguments, **options)

    monkeypatch.setattr(Segment, "matching", matching)
    other = table.FileTable(files.files[:1], np.array([b"another"], "S32"), np.array([0]))
    required = required_by("moored")
    assert other.candidates(segments, required).unknown == 1 and asked == []
    files.candidates(segments, required)
    assert asked == own != []


def test_text_that_python_has_escaped_reads_only_the_files_that_may_have_it() -> None:
    for text in ("def moor(ship, seconds)", "# moor it"):
        plain = finding.started(GrepQuery(Pattern(text, fixed=True)))
        escaped = finding.started(GrepQuery(Pattern(re.escape(text))))
        assert escaped.total == plain.total == 1
