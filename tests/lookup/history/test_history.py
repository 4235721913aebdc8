"""POST /tools/history: the log, blame and diffs of a repository."""

import json
from pathlib import Path
from typing import Any

import pytest

from apps.lookup.history import log
from apps.tools.history import HISTORY
from tests.lookup.history.conftest import Ask
from tests.support.git import commit_all, git, init
from tests.support.ingested import ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def subjects(answer: dict[str, Any]) -> list[str]:
    return [row["message"].partition("\n")[0] for row in answer["results"]]


def test_the_log_has_all_commits_latest_first(fleet: Path, ask: Ask) -> None:
    status, answer = ask()
    assert status == 200
    expected = ["Rename old", "Take the secrets out", "Measure in metres", "Add ships"]
    assert subjects(answer) == expected
    first = answer["results"][0]
    assert first["commit"] == answer["to"] == git(fleet, "rev-parse", "HEAD").strip()
    assert (first["author"], first["date"]) == ("Dan", "2024-04-04T12:00:00+00:00")
    assert "mail.example" not in json.dumps(answer)


def test_the_log_of_a_path_has_the_commits_that_changed_it(fleet: Path, ask: Ask) -> None:
    assert subjects(ask(path="src/ship.py")[1]) == ["Measure in metres", "Add ships"]
    assert subjects(ask(path="./src/")[1]) == ["Rename old", "Measure in metres", "Add ships"]


def test_the_log_of_a_file_follows_it_to_its_earlier_names(fleet: Path, ask: Ask) -> None:
    answer = ask(path="src/new.py")[1]
    assert subjects(answer) == ["Rename old", "Add ships"]
    assert [row.get("oldPath") for row in answer["results"]] == [None, "src/old.py"]
    assert {row["relPath"] for row in answer["results"]} == {"src/new.py"}
    lines = HISTORY.compact(answer)["results"]
    assert [line.partition(" ")[2] for line in lines] == [
        "2024-04-04 Dan: Rename old",
        "2024-01-01 Ada (src/old.py): Add ships",
    ]
    first = ask(path="src/new.py", limit=1)[1]
    second = ask(path="src/new.py", limit=1, cursor=first["nextCursor"])[1]
    assert subjects(first) + subjects(second) == subjects(answer)
    assert subjects(ask(path="src/new.py", **{"from": "v1"})[1]) == ["Rename old"]


@pytest.mark.parametrize(
    ("before", "more", "messages"),
    [("a", "", ["Move", "Begin"]), ("a", "# x\n", ["Move"]), ("new/a", "# x\n", ["Move", "Begin"])],
)
def test_a_log_compares_no_more_files_than_git_does_at_once(
    folder: Path,
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    more: str,
    messages: list[str],
) -> None:
    monkeypatch.setattr(log, "MAX_RENAMED", 2)
    path = init(folder / "work")
    texts = [f"# {n}\n" + "".join(f"N{n}_{m} = {n + m}\n" for m in range(9)) for n in range(3)]
    write_files(path, {f"{before}{n}.py": text for n, text in enumerate(texts)})
    commit_all(path, "Begin")
    for n, text in enumerate(texts):
        (path / f"{before}{n}.py").unlink()
        write_files(path, {f"{'old/a' if '/' in before else 'b'}{n}.py": text + more})
    commit_all(path, "Move")
    ingest(path)
    name = "old/a1.py" if "/" in before else "b1.py"
    assert subjects(ask(path=name, repository="work")[1]) == messages


def test_the_log_of_a_symbol_has_the_commits_that_changed_its_lines(fleet: Path, ask: Ask) -> None:
    assert subjects(ask(symbol="length")[1]) == ["Measure in metres", "Add ships"]
    assert subjects(ask(symbol="speed")[1]) == ["Add ships"]
    # The ingested text has a line more than the commit.
    assert subjects(ask(path="src/ship.py", lines="6-7")[1]) == ["Measure in metres", "Add ships"]


@pytest.mark.parametrize(
    ("since", "to", "expected"),
    [
        ("v1", "main", ["Rename old", "Take the secrets out"]),
        ("release", "HEAD", ["Rename old"]),
        ("HEAD~3", "v1", ["Measure in metres"]),
        ("refs/tags/v1", "release", ["Take the secrets out"]),
        ("ingest", "HEAD", []),
    ],
)
def test_the_log_lies_between_two_names(
    fleet: Path, ask: Ask, since: str, to: str, expected: list[str]
) -> None:
    status, answer = ask(**{"from": since, "to": to})
    assert (status, subjects(answer)) == (200, expected)


def test_an_id_may_be_cut(fleet: Path, ask: Ask) -> None:
    commit = git(fleet, "rev-parse", "v1^{commit}").strip()
    assert ask(to=commit[:9])[1]["to"] == commit


@pytest.mark.parametrize(
    "name",
    ["nothing", "-O/etc/passwd", "HEAD:src", "--all", "HEAD@{1}", "stash", "v1..main", "^main"],
)
def test_other_names_find_no_commit(fleet: Path, ask: Ask, name: str) -> None:
    status, answer = ask(to=name)
    assert (status, answer["error"]) == (404, "REF_NOT_FOUND")


def test_blame_tells_the_commit_of_each_ingested_line(fleet: Path, ask: Ask) -> None:
    status, answer = ask(of="blame", path="src/ship.py")
    assert status == 200
    rows = [
        (row["kind"], row["startLine"], row["endLine"], row.get("author"))
        for row in answer["results"]
    ]
    assert rows == [
        ("uncommitted", 1, 1, None),
        ("lines", 2, 6, "Ada"),
        ("lines", 7, 7, "Ben"),
        ("lines", 8, 11, "Ada"),
    ]
    changed = answer["results"][2]
    assert changed["chunk"] == "    return ship.metres"
    assert changed["message"].startswith("Measure in metres\n\nFeet confused the harbour master")


def test_blame_of_a_symbol_and_of_lines(fleet: Path, ask: Ask) -> None:
    of_symbol = ask(of="blame", symbol="length")[1]["results"]
    of_lines = ask(of="blame", path="src/ship.py", lines="6-7")[1]["results"]
    assert of_symbol == of_lines
    assert [row["author"] for row in of_lines] == ["Ada", "Ben"]


def test_blame_at_an_older_commit(fleet: Path, ask: Ask) -> None:
    rows = ask(of="blame", symbol="length", to="v1~1")[1]["results"]
    assert [(row["kind"], row["startLine"]) for row in rows] == [("lines", 6), ("uncommitted", 7)]


def test_a_diff_with_one_name_is_what_that_commit_changed(fleet: Path, ask: Ask) -> None:
    status, answer = ask(of="diff", to="v1")
    assert status == 200
    assert answer["commit"]["author"] == "Ben"
    (row,) = answer["results"]
    assert (row["relPath"], row["kind"]) == ("src/ship.py", "modified")
    assert "-    return ship.feet\n+    return ship.metres" in row["chunk"]
    assert row["startLine"] <= 6 <= row["endLine"]


def test_a_diff_without_names_is_what_was_committed_since_the_ingest(fleet: Path, ask: Ask) -> None:
    answer = ask(of="diff")[1]
    assert answer["results"] == []
    assert answer["from"] == answer["to"]
    assert "same" in answer["hint"]


def test_a_diff_names_both_paths_of_a_renamed_file(fleet: Path, ask: Ask) -> None:
    (row,) = ask(of="diff", to="HEAD")[1]["results"]
    assert (row["kind"], row["oldPath"], row["relPath"]) == ("renamed", "src/old.py", "src/new.py")
    assert "+# x" in row["chunk"]


def test_a_diff_of_a_symbol_has_the_hunks_that_touch_it(fleet: Path, ask: Ask) -> None:
    form = {"of": "diff", "from": "v1~1", "to": "main"}
    assert len(ask(symbol="length", **form)[1]["results"]) == 1
    assert ask(path="src/ship.py", lines="1", **form)[1]["results"] == []


def test_the_first_commit_is_compared_with_nothing(fleet: Path, ask: Ask) -> None:
    answer = ask(of="diff", to="v1~1", path="src")[1]
    assert {row["kind"] for row in answer["results"]} == {"added"}
    assert "first" in answer["notes"]


def test_pages_have_each_row_once(fleet: Path, ask: Ask) -> None:
    for form in (
        {},
        {"of": "blame", "path": "src/ship.py"},
        {"of": "diff", "from": "v1~1", "to": "HEAD"},
    ):
        whole = ask(**form)[1]["results"]
        rows, cursor = [], None
        for _ in whole:
            page = ask(limit=1, cursor=cursor, **form)[1]
            rows += page["results"]
            cursor = page.get("nextCursor")
        assert rows == whole
        assert cursor is None


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"of": "show"}, "of must be"),
        ({"of": "blame"}, "need a path or a symbol"),
        ({"path": "../etc/passwd"}, "path must be"),
        ({"path": "/etc/passwd"}, "path must be"),
        ({"path": "a\0b"}, "NUL"),
        ({"path": "src/ship.py", "lines": "1-2,5-6"}, "one range"),
        ({"symbol": "length", "path": "src/ship.py", "lines": "1"}, "exclude"),
        ({"repository": ""}, "repository is required"),
        ({"from": 5}, "from must be a string"),
        ({"cursor": "x"}, "cursor must be"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(
    fleet: Path, ask: Ask, body: dict[str, object], problem: str
) -> None:
    status, answer = ask(**body)
    assert status == 400
    assert problem in json.dumps(answer)


def test_an_unknown_symbol_and_file(fleet: Path, ask: Ask) -> None:
    assert ask(symbol="anchor")[1]["error"] == "SYMBOL_NOT_FOUND"
    assert ask(of="blame", path="src/none.py")[1]["error"] == "FILE_NOT_FOUND"
    assert ask(path="src/none.py")[1]["results"] == []


def test_a_page_ends_behind_a_large_row(
    fleet: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.lookup.history.diff.MAX_CHARS", 10)
    rows, cursor = [], None
    while cursor or not rows:
        answer = ask(of="diff", to="v1~1", cursor=cursor)[1]
        assert len(answer["results"]) == 1
        rows += answer["results"]
        cursor = answer.get("nextCursor")
    assert [row["relPath"] for row in rows] == ["README.md", "src/old.py", "src/ship.py"]
