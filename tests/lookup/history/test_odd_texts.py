"""Histories of texts that are rare: in other encodings, alike in many lines, with secrets."""

from pathlib import Path

import pytest
from django.test import Client

from apps.lookup.history.lines import line_numbers
from tests.lookup.history.conftest import PRIVATE_KEY
from tests.support.git import commit_all, git, init
from tests.support.ingested import ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1", "utf-16"])
def test_blame_knows_the_lines_of_other_encodings(
    folder: Path, client: Client, encoding: str
) -> None:
    path = init(folder / "words")
    (path / "a.txt").write_bytes("Un café\nUne forêt\n".encode(encoding))
    commit_all(path)
    ingest(path)
    form = {"repository": "words", "of": "blame", "path": "a.txt"}
    answer = client.post("/tools/history", form, content_type="application/json").json()
    (row,) = answer["results"]
    assert (row["kind"], row["startLine"], row["endLine"]) == ("lines", 1, 2)


def test_a_file_that_was_a_folder_has_no_lines_then(folder: Path, client: Client) -> None:
    path = init(folder / "turned")
    write_files(path, {"a/b.py": "x = 1\n"})
    commit_all(path, "Folder")
    (path / "a/b.py").unlink()
    (path / "a").rmdir()
    write_files(path, {"a": "x = 1\n"})
    commit_all(path, "File")
    ingest(path)
    form = {"repository": "turned", "of": "blame", "path": "a", "to": "HEAD~1"}
    response = client.post("/tools/history", form, content_type="application/json")
    assert response.status_code == 200
    assert [row["kind"] for row in response.json()["results"]] == ["uncommitted"]


def test_lines_that_are_there_often_are_found_beside_others_only() -> None:
    """Comparing texts of such lines alone would take minutes."""
    ours = [text for n in range(900) for text in ("", f"old_{n}")]
    theirs = [text for n in range(900) for text in ("", f"new_{n}")]
    assert line_numbers([*ours, "end"], [*theirs, "END"]) == [1] + [0] * 1_800
    ours[101], theirs[201] = "kept", "kept"
    numbers = line_numbers([*ours, "end"], [*theirs, "END"])
    assert numbers[99:104] == [0, 201, 202, 203, 0]


def test_of_very_many_renamed_files_each_side_has_its_text(folder: Path, client: Client) -> None:
    path = init(folder / "many", "-b", "main")
    write_files(path, {"a.py": "x = 1\n"})
    commit_all(path)
    ingest(path)
    # git looks for no renamed files among more than 1,000.
    numbers = range(1_001)
    old = [inline(f"d/{n:04}.txt", f"{n}\nsame\nsame\n") for n in numbers]
    new = [inline(f"d/{n:04}_.txt", f"{n}\nsame\nSAME\n") for n in numbers]
    gone = [f"D d/{n:04}.txt\n" for n in numbers]
    head = f"commit refs/heads/many\ncommitter a <a@b> 1 +0000\n{data('x')}"
    (path / ".git/stream").write_text(head + "".join(old) + head + "".join(gone + new))
    imported = ("-c", "alias.load=!git fast-import --quiet <.git/stream", "load")
    git(path, *imported)
    form = {"repository": "many", "of": "diff", "to": "many", "limit": 2}
    answer = client.post("/tools/history", form, content_type="application/json").json()
    deleted, added = answer["results"]
    assert (deleted["kind"], deleted["chunk"]) == ("deleted", "@@ -1,3 +0,0 @@\n-0\n-same\n-same")
    assert (added["kind"], added["chunk"]) == ("added", "@@ -0,0 +1,3 @@\n+0\n+same\n+SAME")


def inline(path: str, text: str) -> str:
    return f"M 644 inline {path}\n{data(text)}"


def data(text: str) -> str:
    """A text in the language of `git fast-import`."""
    return f"data {len(text)}\n{text}"


def test_a_message_with_a_secret_is_left_out(folder: Path, client: Client) -> None:
    path = init(folder / "keys")
    write_files(path, {"a.py": "x = 1\n"})
    commit_all(path, f"Rotate\n\n{PRIVATE_KEY}")
    ingest(path)
    for of in ("log", "diff"):
        form = {"repository": "keys", "of": of, "to": "HEAD"}
        response = client.post("/tools/history", form, content_type="application/json")
        assert response.status_code == 200
        assert "MIIEvQ" not in response.content.decode()
        assert "it holds a secret" in response.content.decode()
