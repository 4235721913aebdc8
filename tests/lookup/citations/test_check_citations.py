"""`POST /tools/check-citations`: citations of any text against the files on the disk."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.support.git import commit_all, git, init
from tests.support.ingested import SAMPLE, ingest, ingest_sample, write_files

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

PATH = "src/retry.py"
DELAY = "\n".join(SAMPLE[PATH].split("\n")[5:8])
QUOTED = f"It doubles (`lighthouse/{PATH}:6-8`):\n\n```python\n{DELAY}\n```\n"
Check = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def check(client: Client) -> Check:
    def answer(text: str, **more: Any) -> list[dict[str, Any]]:
        body = {"text": text, **more}
        response = client.post("/tools/check-citations", body, content_type="application/json")
        assert response.status_code == 200, response.content
        rows: list[dict[str, Any]] = response.json()["results"]
        return rows

    return answer


@pytest.fixture
def repository(folder: Path) -> Path:
    ingest_sample(folder)
    return folder


def verdicts(rows: list[dict[str, Any]]) -> list[str]:
    return [row["verdict"] for row in rows]


def test_a_quote_is_ok_moved_or_not_found(check: Check, repository: Path) -> None:
    (row,) = check(QUOTED)
    assert (row["verdict"], row["startLine"], row["endLine"]) == ("ok", 6, 8)
    file = repository / PATH
    file.write_text("# one\n" + file.read_text())
    (row,) = check(QUOTED)
    assert (row["verdict"], row["cited"]) == ("moved", f"lighthouse/{PATH}:6-8")
    assert (row["relPath"], row["startLine"], row["endLine"]) == (PATH, 7, 9)
    file.write_text(file.read_text().replace("2**attempt", "3**attempt"))
    assert verdicts(check(QUOTED)) == ["not_found"]


@pytest.mark.parametrize(
    "text",
    [
        f"`{PATH}:6-8`\n```\n{DELAY}\n```",
        f"> lighthouse/{PATH}:L6-L8\n\n~~~python\n{DELAY}\n~~~",
        f"```6:8:{PATH}\n{DELAY}\n```",
        f"```python 6:8:{PATH}\n{DELAY}\n```",
        f"```python {PATH}:6-8\n{DELAY}\n```",
        f"[delay]({PATH}#L6-L8)\n```\n{DELAY}\n```",
        f"/code/lighthouse/{PATH}?lines=6-8\n```\n{DELAY}\n```",
        f"{PATH}:6\n```\n{DELAY}\n```",
        "src/retry.py:6-8\n```\n"
        + "\n".join(f"{n}: {line}" for n, line in enumerate(DELAY.split("\n"), 6))
        + "\n```",
        f"{PATH}:6-8\r\n```\r\n" + DELAY.replace("\n", "\r\n") + "\r\n```",
        f"{PATH}:6-8\n```\n{DELAY}",
    ],
)
def test_each_form_of_a_quote_is_read(check: Check, repository: Path, text: str) -> None:
    (row,) = check(text)
    assert (row["verdict"], row["startLine"], row["endLine"]) == ("ok", 6, 8)
    assert verdicts(check(text.replace("base", "root"))) == ["not_found"]


def test_lines_without_a_text_exist_or_are_out_of_range(check: Check, repository: Path) -> None:
    text = f"{PATH}:18, {PATH}:10-40, {PATH}#L3 and src/nothing.py:3 at 10:30 on localhost:8080."
    assert [(row["cited"], row["verdict"]) for row in check(text)] == [
        (f"{PATH}:3", "exists"),
        (f"{PATH}:18", "exists"),
        (f"{PATH}:10-40", "out_of_range"),
        ("src/nothing.py:3", "not_found"),
    ]


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        (f"{PATH}:6-8, 10-12", [f"{PATH}:6-8", f"{PATH}:10-12"]),
        (f"`{PATH}:6-8, 10`", [f"{PATH}:6-8", f"{PATH}:10"]),
        (f"{PATH}:6-8, 10 of them", [f"{PATH}:6-8"]),
        (f"{PATH}:6-8, 2024-11", [f"{PATH}:6-8"]),
        (f"**{PATH}** (lines 6–8)", [f"{PATH}:6-8"]),
        (f"**`{PATH}`**, lines 6-8", [f"{PATH}:6-8"]),
        (f"`{PATH}` (line 6)", [f"{PATH}:6"]),
        ("a page (lines 6-8), line 3", []),
    ],
)
def test_lines_are_read_as_the_chat_links_them(
    check: Check, repository: Path, text: str, cited: list[str]
) -> None:
    assert [row["cited"] for row in check(text)] == cited


def test_code_below_two_ranges_is_taken_for_neither(check: Check, repository: Path) -> None:
    text = f"{PATH}:6-8, 10-12\n```\n{DELAY}\n```"
    assert verdicts(check(text)) == ["exists", "exists"]


def test_a_quote_that_may_be_other_lines_is_not_moved(check: Check, repository: Path) -> None:
    line = DELAY.split("\n")[-1]
    quoted = f"{PATH}:6\n```\n{line}\n```"
    assert verdicts(check(quoted)) == ["unknown"]
    assert verdicts(check(quoted.replace(":6", ":8"))) == ["ok"]
    file = repository / PATH
    file.write_text(f"\n{file.read_text()}\n\n{DELAY}\n")
    assert verdicts(check(QUOTED)) == ["unknown"]
    file.unlink()
    (repository / "src/other.py").write_text(f"{line}\n")
    assert verdicts(check(quoted)) == ["not_found"]


def test_a_quote_follows_a_renamed_file(check: Check, repository: Path) -> None:
    (repository / PATH).rename(repository / "src/again.py")
    (row,) = check(QUOTED)
    assert (row["verdict"], row["relPath"], row["startLine"]) == ("moved", "src/again.py", 6)
    (repository / "src/again.py").unlink()
    assert verdicts(check(QUOTED)) == ["not_found"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (f"https://git.example/o/r/blob/main/{PATH}#L6-L8", "exists"),
        (f"https://git.example/o/r/blob/main/{PATH}?plain=1#L6", "exists"),
        (f"{PATH}:0", "out_of_range"),
        # No path leads out of the folder, not even to say that a file is there.
        ("lighthouse/../outside.py:1", "not_found"),
        ("../outside.py:1", "not_found"),
        ("src/a%00b.py#L3", "not_found"),
        ("src/a%ED%A0%80b.py#L3", "not_found"),
    ],
)
def test_paths_and_lines_that_are_no_file_s(
    check: Check, repository: Path, path: str, found: str
) -> None:
    (repository.parent / "outside.py").write_text("x = 1\n")
    assert verdicts(check(path)) == [found]


def test_a_path_without_a_repository_may_be_in_several(check: Check, folder: Path) -> None:
    ingest(write_files(folder / "a", SAMPLE), "lighthouse")
    ingest(write_files(folder / "b", SAMPLE), "harbour")
    text = f"{PATH}:6 ./{PATH}:6 harbour/{PATH}:6 ./harbour/{PATH}:6 src/nothing.py:6"
    assert verdicts(check(text)) == ["unknown", "unknown", "exists", "exists", "not_found"]


@pytest.fixture
def commit(folder: Path) -> str:
    """The id of the only commit of the ingested repository."""
    commit_all(init(write_files(folder, SAMPLE)))
    ingest(folder, "lighthouse")
    return git(folder, "rev-parse", "HEAD").strip()


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        (lambda text: text, ("ok", PATH, 6)),
        (lambda text: "# one\n" + text, ("moved", PATH, 7)),
        (lambda text: text.replace("2**attempt", "3**attempt"), ("changed", PATH, None)),
        (lambda text: "pass\n", ("gone", PATH, None)),
    ],
)
def test_lines_of_a_commit_get_one_of_five_verdicts(
    check: Check, folder: Path, commit: str, edit: Callable[[str], str], found: tuple[str, str, int]
) -> None:
    file = folder / PATH
    file.write_text(edit(file.read_text()))
    address = f"https://git.example/lighthouse/blob/{commit}/{PATH}#L6-L8"
    for text, more in (
        (f"{PATH}:6-8", {"commit": commit}),
        (address, {}),
        (QUOTED, {"commit": "HEAD"}),
    ):
        (row,) = check(text, **more)
        assert (row["verdict"], row["relPath"], row.get("startLine")) == found


def test_a_file_that_was_renamed_is_followed_from_a_commit(
    check: Check, folder: Path, commit: str
) -> None:
    text = (folder / PATH).read_text()
    (folder / PATH).unlink()
    # A copy that was there is not what it has become.
    assert verdicts(check(f"{PATH}:6-8", commit=commit)) == ["gone"]
    write_files(folder, {"lib/again.py": "# more\n" + text})
    (row,) = check(f"{PATH}:6-8", commit=commit)
    assert (row["verdict"], row["relPath"], row["startLine"]) == ("moved", "lib/again.py", 7)
    write_files(folder, {"lib/again.py": text.replace("2**", "3**")})
    assert verdicts(check(f"{PATH}:6-8", commit=commit)) == ["changed"]


def test_a_copy_beside_a_renamed_file_is_not_what_it_has_become(
    check: Check, folder: Path, commit: str
) -> None:
    text = (folder / PATH).read_text()
    (folder / PATH).unlink()
    altered = text.replace("2**", "3**")
    write_files(folder, {"lib/retry.py": altered, "lib/a.py": text, "lib/retry.txt": text})
    assert verdicts(check(f"{PATH}:6-8", commit=commit)) == ["changed"]
    (row,) = check(f"{PATH}:11-12", commit=commit)
    assert (row["verdict"], row["relPath"]) == ("moved", "lib/retry.py")


def test_what_a_quote_says_is_compared_with_the_commit_first(
    check: Check, folder: Path, commit: str
) -> None:
    invented = QUOTED.replace("2**attempt", "9**attempt")
    assert verdicts(check(invented, commit=commit)) == ["not_found"]
    assert verdicts(check(f"{PATH}:400", commit=commit)) == ["out_of_range"]


@pytest.mark.parametrize(
    "harm",
    [
        shutil.rmtree,
        lambda folder: (shutil.rmtree(folder), folder.mkdir()),
        lambda folder: ((folder / PATH).unlink(), (folder / PATH).symlink_to("/etc/passwd")),
    ],
)
def test_what_cannot_be_looked_at_is_unknown(
    check: Check, repository: Path, harm: Callable[[Path], object]
) -> None:
    harm(repository)
    assert verdicts(check(QUOTED)) == ["unknown"]


def test_files_that_are_left_out_of_the_ingest_are_unknown(check: Check, folder: Path) -> None:
    secret = "-----BEGIN RSA " + "PRIVATE KEY-----\nabc\n"
    files = SAMPLE | {"id_rsa": secret, ".gitignore": "ignored.py\n", "ignored.py": DELAY}
    git(init(write_files(folder, files)), "add", ".")
    ingest(folder, "lighthouse")
    text = f"lighthouse/id_rsa:2\n```\nabc\n```\nlighthouse/ignored.py:1-3\n```\n{DELAY}\n```"
    assert verdicts(check(text)) == ["unknown", "unknown"]


def test_a_folder_in_the_place_of_a_file_and_bytes_are_no_text(
    check: Check, folder: Path, commit: str
) -> None:
    file = folder / PATH
    file.write_bytes(b"\0\1\2" * 100)
    assert verdicts(check(f"{PATH}:6-8", commit=commit)) == ["gone"]
    file.unlink()
    write_files(folder, {f"{PATH}/inside.txt": "x\n"})
    assert verdicts(check(f"{PATH}:6-8", commit=commit)) == ["gone"]


def test_endings_of_lines_and_marks_of_bytes_do_not_count(
    check: Check, folder: Path, commit: str
) -> None:
    file = folder / PATH
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert verdicts(check(f"{PATH}:1-8", commit=commit)) == ["ok"]


def test_the_citations_of_a_text_are_limited(
    client: Client, check: Check, repository: Path
) -> None:
    assert len(check("\n".join(f"{PATH}:{n}" for n in range(1, 400)))) == 200
    for text in ("", "x" * 100_001, None, 3):
        body = {"text": text}
        response = client.post("/tools/check-citations", body, content_type="application/json")
        assert response.json()["error"] == "VALIDATION_FAILED", text


def test_the_summary_says_how_many_hold(client: Client, repository: Path) -> None:
    body = {"text": f"{QUOTED}\n{PATH}:400"}
    response = client.post("/tools/check-citations", body, content_type="application/json")
    assert response.json()["summary"] == "2 citations, 1 still holds"
