"""POST /tools/read-file and /tools/list-files."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from apps.index.models import IngestRun, Root, SourceFile
from apps.tools.read_file import READ_FILE
from tests.lookup.symbols.conftest import HARBOUR
from tests.lookup.texts.conftest import Post

pytestmark = [pytest.mark.door, pytest.mark.django_db, pytest.mark.usefixtures("harbour")]

CLIENT = "src/harbour/client.py"


def read(post: Post, **body: Any) -> dict[str, Any]:
    status, answer = post("read-file", **{"repository": "harbour", "path": CLIENT, **body})
    assert status == 200, answer
    return answer


def spans(answer: dict[str, Any]) -> list[tuple[int, int]]:
    return [(row["startLine"], row["endLine"]) for row in answer["results"]]


def test_a_small_file_is_read_whole(post: Post) -> None:
    answer = read(post)
    (row,) = answer["results"]
    text = HARBOUR[CLIENT]
    assert isinstance(text, str) and row["chunk"] + "\n" == text
    assert answer["totalLines"] == row["endLine"] == text.count("\n")
    assert answer["generation"] == 1 and not answer["truncated"]
    assert not {"changed", "outline"} & answer.keys()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("5", [(5, 5)]),
        ("8-9, 1-2", [(1, 2), (8, 9)]),
        ("1-3,4-5,5-6", [(1, 6)]),
        ("17-", [(17, 18)]),
        ("17-400", [(17, 18)]),
        (["2-3", 7], [(2, 3), (7, 7)]),
        ("400", []),
    ],
)
def test_ranges_are_sorted_merged_and_cut_to_the_file(
    post: Post, lines: Any, expected: list[tuple[int, int]]
) -> None:
    assert spans(read(post, lines=lines)) == expected


def test_beyond_the_end_it_says_how_many_lines_there_are(post: Post) -> None:
    assert read(post, lines="400")["hint"] == "The file has 18 lines."
    assert read(post, lines="1-2, 400-500")["hint"] == "The file has 18 lines."
    assert "hint" not in read(post, lines="17-400")


@pytest.mark.parametrize("lines", ["x", "0-3", "9-3", "-3", ",".join(["1"] * 21), True])
def test_wrong_ranges_are_refused(post: Post, lines: Any) -> None:
    status, answer = post("read-file", repository="harbour", path=CLIENT, lines=lines)
    assert status == 400 and answer["details"][0].startswith("lines must")


def test_a_file_that_changed_is_read_as_it_was_ingested_and_says_so(
    post: Post, harbour: Path
) -> None:
    file, text = harbour / "notes.txt", HARBOUR["notes.txt"]
    kept = file.stat()
    try:
        file.write_text("Other words.\n")
        answer = read(post, path="notes.txt")
        assert answer["results"][0]["chunk"] == "Nothing of note."
        assert answer["changed"].startswith("The file on disk has changed")
        file.unlink()
        assert read(post, path="notes.txt")["changed"].startswith("The file is gone")
    finally:
        assert isinstance(text, str)
        file.write_text(text)
        os.utime(file, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    assert "changed" not in read(post, path="notes.txt")


def test_a_large_file_comes_as_outline_and_first_lines(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.lookup.texts.reading.LARGE", 10)
    monkeypatch.setattr("apps.lookup.texts.reading.FIRST_LINES", 4)
    answer = read(post)
    assert spans(answer) == [(1, 4)] and "18 lines" in answer["hint"]
    assert answer["outline"][:2] == ["5 constant TIMEOUT = 5", "8-18 class class Client"]
    assert any(each.startswith("  11-15 method") for each in answer["outline"])
    assert "outline" not in read(post, lines="1-18")


def test_what_exceeds_the_cap_continues_with_the_next_line(configure: Any) -> None:
    place = {"repository": "harbour", "path": CLIENT}
    configure(tool_max_chars=len(json.dumps(READ_FILE.run(place))) + 100)
    texts, start = [], 1
    while True:
        answer = READ_FILE.run(place | {"lines": f"{start}-"})
        texts.append(answer["results"][0]["chunk"])
        start = answer["results"][-1]["endLine"] + 1
        if not answer["truncated"]:
            break
        assert answer["hint"] == f"There is more: continue with lines {start}-."
    assert len(texts) > 1 and "\n".join(texts) + "\n" == HARBOUR[CLIENT]


def test_unknown_files_and_repositories_are_named(post: Post) -> None:
    assert post("read-file", repository="nowhere", path="a")[1]["error"] == "REPO_NOT_FOUND"
    status, answer = post("read-file", repository="harbour", path="x/client.py")
    assert (status, answer["error"]) == (404, "FILE_NOT_FOUND") and CLIENT in answer["message"]
    assert read(post, path=f"harbour/{CLIENT}")["relPath"] == CLIENT
    assert post("read-file", repository="harbour")[0] == 400


# --- ListFiles ------------------------------------------------------------------------------------


def paths(post: Post, **body: Any) -> list[str]:
    status, answer = post("list-files", **{"repository": "harbour", **body})
    assert status == 200, answer
    return [row["relPath"] for row in answer["results"]]


def test_a_tree_ends_at_its_depth_with_counts(post: Post) -> None:
    assert paths(post, depth=1) == [
        *["db/", "docs/", "lib/", "notes.txt", "src/", "tests/", "web/"],
    ]
    _, answer = post("list-files", repository="harbour", depth=1, path="src/")
    (folder,) = answer["results"]
    sizes = sum(len(text) for path, text in HARBOUR.items() if path.startswith("src/"))
    assert folder == {
        "repo": "harbour",
        "relPath": "src/harbour/",
        "kind": "folder",
        "size": sizes,
        "files": 2,
        "languages": ["python"],
    }
    assert answer["generations"] == {"harbour": 1}


def test_a_glob_and_a_language_list_files(post: Post) -> None:
    assert paths(post, path="*.py") == [CLIENT, "src/harbour/ships.py", "tests/test_ships.py"]
    assert paths(post, language="rust") == ["lib/crane.rs"]
    assert paths(post, path="**/{ships,crane}.*") == [
        "db/ships.sql",
        "lib/crane.rs",
        "src/harbour/ships.py",
    ]
    assert post("list-files", path="src/nothing/")[1]["hint"].startswith("No file of")


def test_pages_follow_one_another(post: Post) -> None:
    every = paths(post, depth=5)
    _, first = post("list-files", repository="harbour", depth=5, limit=3)
    assert first["truncated"] and "nextCursor" in first["hint"]
    start = paths(post, depth=5, limit=3)
    assert start + paths(post, depth=5, cursor=first["nextCursor"]) == every
    assert start + paths(post, depth=5, offset=3) == every


def test_skipped_files_are_listed_with_their_reason(post: Post) -> None:
    root = Root.objects.get(name="harbour")
    run = IngestRun.objects.filter(root=root).first()
    assert run is not None
    SourceFile.objects.create(
        root=root, run=run, path="big.bin", since=1, size=9, skip_reason="binary"
    )
    status, answer = post("list-files", repository="harbour", skipped=True)
    row = {"repo": "harbour", "relPath": "big.bin", "kind": "file", "size": 9, "reason": "binary"}
    assert (status, answer["results"]) == (200, [row])
    assert "big.bin" not in paths(post)


def test_wrong_arguments_are_refused(post: Post) -> None:
    status, answer = post("list-files", depth="deep", skipped="x")
    assert status == 400
    assert answer["details"] == ["skipped must be true or false", "depth must be an integer"]
