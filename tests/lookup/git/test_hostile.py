"""What a hostile repository says has no effect, and what is not known is said."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.support.git import commit_all, git, hostile, init
from tests.support.ingested import ingest, run_ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

TEXT = "".join(f"LINE_{n} = {n}\n" for n in range(5))
Ask = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def ask(client: Client, index: None) -> Ask:
    """ask(of="log") is the status and the JSON of History about `repo`."""

    def asked(**body: Any) -> tuple[int, dict[str, Any]]:
        form = {"repository": "repo"} | body
        response = client.post("/tools/history", form, content_type="application/json")
        return response.status_code, response.json()

    return asked


@pytest.fixture
def repository(folder: Path) -> Path:
    """A repository `repo` with two commits."""
    path = init(folder / "repo", "-b", "main")
    write_files(path, {"a.py": TEXT})
    commit_all(path, "First")
    write_files(path, {"a.py": TEXT.replace("LINE_2 = 2", "LINE_2 = 22")})
    commit_all(path, "Second")
    return path


def all_answers(ask: Ask) -> list[tuple[int, dict[str, Any]]]:
    return [ask(), ask(of="blame", path="a.py"), ask(of="diff", to="HEAD"), ask(path="a.py")]


def test_the_configuration_and_attributes_of_a_repository_run_nothing(
    repository: Path, ask: Ask, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    command = f"touch '{mark}'; false"
    for name, value in {
        "core.fsmonitor": command,
        "core.hooksPath": str(repository),
        "core.pager": command,
        "core.sshCommand": command,
        "diff.external": command,
        "diff.evil.command": command,
        "diff.evil.textconv": command,
        "filter.evil.smudge": command,
        "filter.evil.clean": command,
        "log.showSignature": "true",
        "gpg.program": command,
        "blame.ignoreRevsFile": "/dev/full",
        "alias.log": f"!{command}",
        "include.path": "/dev/tty",
    }.items():
        git(repository, "config", name, value)
    (repository / ".git/info/attributes").write_text("* diff=evil filter=evil\n")
    ingest(repository)
    assert [status for status, _ in all_answers(ask)] == [200] * 4
    assert not mark.exists()


def test_a_repository_that_belongs_to_another_user_by_now_is_not_read(
    repository: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(repository)
    real = Path.lstat

    def lstat(self: Path) -> os.stat_result:
        found = list(real(self))
        stranger = self == repository / ".git"
        return os.stat_result([*found[:4], 12345, *found[5:]] if stranger else found)

    monkeypatch.setattr(Path, "lstat", lstat)
    for status, answer in all_answers(ask):
        assert status == 503 and "belongs to another user" in str(answer)


def test_variables_of_the_server_have_no_effect(
    repository: Path, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(repository)
    expected = all_answers(ask)
    mark = tmp_path / "mark"
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch '{mark}'")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "diff.external")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"touch '{mark}'")
    assert all_answers(ask) == expected
    assert not mark.exists()


def test_nothing_is_fetched_from_a_promisor(folder: Path, ask: Ask, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    ingest(hostile(folder / "repo", mark))
    # The tree of a folder is missing, and git would fetch it with the command of the remote.
    status, answer = ask(of="diff", to="HEAD")
    assert (status, answer["error"]) == (503, "GIT_FAILED")
    assert not mark.exists()


def test_a_partial_clone_says_that_objects_are_missing(
    repository: Path, folder: Path, ask: Ask
) -> None:
    git(repository, "config", "uploadpack.allowFilter", "true")
    source, clone = folder / "source", folder / "repo"
    repository.rename(source)
    git(folder, "clone", "-q", "--filter=blob:none", f"file://{source}", str(clone))
    shutil.rmtree(source)
    ingest(clone)
    assert len(ask()[1]["results"]) == 2
    for form in ({"of": "blame", "path": "a.py"}, {"of": "diff", "to": "HEAD"}):
        status, answer = ask(**form)
        assert (status, answer["error"]) == (503, "GIT_FAILED")
        assert "partial clone" in answer["message"]


def test_a_shallow_clone_says_where_it_ends(repository: Path, folder: Path, ask: Ask) -> None:
    repository.rename(folder / "source")
    write_files(folder / "source", {"b.py": TEXT})
    commit_all(folder / "source", "Third")
    git(folder, "clone", "-q", "--depth=2", f"file://{folder}/source", "repo")
    ingest(folder / "repo")
    answer = ask(of="blame", path="a.py")[1]
    assert all(row["boundary"] for row in answer["results"])
    assert answer["results"][0]["commit"][:10] in answer["notes"]
    assert "shallow clone" in answer["notes"]
    log = ask()[1]
    assert [row.get("boundary", False) for row in log["results"]] == [False, True]


def test_replaced_commits_are_not_obeyed(repository: Path, ask: Ask) -> None:
    other = git(repository, "commit-tree", "HEAD^{tree}", "-m", "Forged").strip()
    git(repository, "replace", "HEAD", other)
    ingest(repository)
    assert [row["message"] for row in ask()[1]["results"]] == ["Second", "First"]


def shared(folder: Path) -> Path:
    """A clone that borrows the objects of `folder / "source"`."""
    (folder / "repo").rename(folder / "source")
    git(folder, "clone", "-q", "--shared", "source", "repo")
    return folder / "repo"


def test_a_clone_may_borrow_from_what_may_be_ingested(
    repository: Path, folder: Path, ask: Ask
) -> None:
    ingest(shared(folder))
    assert len(ask()[1]["results"]) == 2


@pytest.mark.parametrize("as_link", [False, True])
def test_a_clone_may_not_borrow_from_elsewhere(
    repository: Path,
    folder: Path,
    ask: Ask,
    tmp_path_factory: pytest.TempPathFactory,
    configure: Callable[..., None],
    as_link: bool,
) -> None:
    path = shared(folder)
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "objects"
    shutil.move(folder / "source/.git/objects", elsewhere)
    (path / ".git/objects/info/alternates").write_text(f"{elsewhere}\n")
    if as_link:
        (path / ".git/objects/info/alternates").unlink()
        shutil.rmtree(path / ".git/objects")
        (path / ".git/objects").symlink_to(elsewhere)
    ingest(path)
    configure(ingest_base=(folder,))
    status, answer = ask()
    assert (status, answer["error"]) == (503, "GIT_FAILED")
    assert "may not be ingested" in answer["message"]


@pytest.mark.parametrize("pointer", [".git", "commondir"])
def test_objects_are_not_read_of_a_repository_elsewhere(
    repository: Path,
    folder: Path,
    ask: Ask,
    tmp_path_factory: pytest.TempPathFactory,
    configure: Callable[..., None],
    pointer: str,
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "git"
    shutil.move(repository / ".git", elsewhere)
    if pointer == ".git":
        (repository / ".git").write_text(f"gitdir: {elsewhere}\n")
    else:
        write_files(repository / ".git", {"HEAD": "ref: refs/heads/main\n"})
        shutil.copy(elsewhere / "index", repository / ".git/index")
        (repository / ".git/commondir").write_text(f"{elsewhere}\n")
    ingest(repository)
    configure(ingest_base=(folder,))
    status, answer = ask()
    assert (status, answer["error"]) == (503, "GIT_FAILED")
    assert "may not be ingested" in answer["message"]


def test_a_name_with_a_line_end_is_one_lender(
    repository: Path,
    folder: Path,
    ask: Ask,
    configure: Callable[..., None],
) -> None:
    base, elsewhere = folder / "base", folder / "elsewhere"
    base.mkdir()
    path = shared(folder).rename(base / "repo")
    (folder / "source/.git/objects").rename(elsewhere)
    (base / "x\ry").mkdir()
    # Up to CR it is the folder `base/x`, behind it a folder of the repository.
    (path / ".git/objects/info/alternates").write_bytes(b"../../../x\ry/../../elsewhere\n")
    ingest(path)
    configure(ingest_base=(base,))
    assert "may not be ingested" in ask()[1]["message"]


def test_alternates_in_a_circle_end(repository: Path, ask: Ask) -> None:
    objects = repository / ".git/objects"
    (objects / "info/alternates").write_text(f"{objects}\n../objects\n")
    ingest(repository)
    assert len(ask()[1]["results"]) == 2


def test_names_that_no_folder_can_have_are_left_out(repository: Path, ask: Ask) -> None:
    (repository / os.fsdecode(b"caf\xe9.py")).write_text("x = 1\n")
    (repository / "b.py").write_text("x = 1\n")
    git(repository, "add", ".")
    inner = git(repository, "write-tree").strip()
    entries = b"40000 ..\0" + bytes.fromhex(inner)
    entries += b"40000 lib\0" + bytes.fromhex(inner)
    tree = written(repository, "tree", entries)
    commit = git(repository, "commit-tree", tree, "-m", "Odd", "-p", "HEAD").strip()
    git(repository, "update-ref", "HEAD", commit)
    ingest(repository)
    status, answer = ask(of="diff", to="HEAD", limit=100)
    assert status == 200
    assert {row["relPath"] for row in answer["results"]} == {"lib/a.py", "lib/b.py"}
    assert "Name is not UTF-8 1" in answer["notes"]


def test_folders_without_end_are_left_out(
    repository: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = git(repository, "rev-parse", "HEAD^{tree}").strip()
    # Both entries of a folder are the folder below: a few more, and no list has all paths.
    for deep in range(103):
        names = (b"a", b"b") if deep < 3 else (b"a",)
        entries = (b"40000 " + name + b"\0" + bytes.fromhex(tree) for name in names)
        tree = written(repository, "tree", b"".join(entries))
    commit = git(repository, "commit-tree", tree, "-m", "Deep").strip()
    shallow = git(repository, "commit-tree", f"{commit}:{'a/' * 98}", "-m", "Less").strip()
    ingest(repository)
    monkeypatch.setattr("apps.lookup.history.visible.MOST_FOLDERS", 11)
    answer = ask(of="diff", to=commit)[1]
    assert (answer["results"], "over 100 levels 8" in answer["notes"]) == ([], True)
    answer = ask(of="diff", to=shallow, limit=100)[1]
    assert "folders" in answer["notes"]
    assert 0 < len(answer["results"]) < 8


def written(folder: Path, kind: str, content: bytes) -> str:
    """The id of an object that git itself would not write."""
    (folder / ".git/raw").write_bytes(content)
    return git(folder, "hash-object", "--literally", "-t", kind, "-w", ".git/raw").strip()


@pytest.mark.parametrize(
    ("author", "date"),
    [
        ("A <a@b> 253402304399 -0100", "9999-12-31T23:59:59-01:00"),
        ("A <a@b> -62135596800 +0100", ""),
        ("", ""),
    ],
)
def test_a_commit_without_a_usable_date_is_shown(
    repository: Path, ask: Ask, client: Client, author: str, date: str
) -> None:
    tree = git(repository, "rev-parse", "HEAD^{tree}").strip()
    lines = (f"tree {tree}", f"author {author}", "committer A <a@b> 0 +0000", "", "Odd")
    git(repository, "update-ref", "HEAD", written(repository, "commit", "\n".join(lines).encode()))
    ingest(repository)
    (row,) = ask()[1]["results"]
    assert (row["date"], row["message"]) == (date, "Odd")
    assert b"Odd" in client.get("/code/repo?view=history").content


def test_a_reftable_is_refused(repository: Path, ask: Ask) -> None:
    ingest(repository)
    (repository / ".git/reftable").mkdir()
    status, answer = ask()
    assert (status, answer["error"]) == (503, "GIT_FAILED")
    assert "reftable" in answer["message"]


def test_a_repository_with_sha256(folder: Path, ask: Ask) -> None:
    path = init(folder / "repo", "--object-format=sha256")
    write_files(path, {"a.py": TEXT})
    commit_all(path, "First")
    ingest(path)
    answers = all_answers(ask)
    assert [status for status, _ in answers] == [200] * 4
    assert len(answers[0][1]["to"]) == 64
    assert answers[2][1]["results"][0]["kind"] == "added"


def test_without_git_it_says_so(
    repository: Path, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(repository)
    monkeypatch.setenv("PATH", str(tmp_path))
    status, answer = ask()
    assert (status, answer["error"]) == (503, "GIT_MISSING")


def program(folder: Path, script: str) -> Path:
    """A folder with a program `git`."""
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "git").chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("while :; do :; done", "TIMED_OUT"),
        ("exec tr '\\0' x </dev/zero", "GIT_FAILED"),
        ("echo gone wrong >&2; exit 3", "GIT_FAILED"),
    ],
)
def test_git_is_limited(
    repository: Path,
    ask: Ask,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    code: str,
) -> None:
    ingest(repository)
    if code == "TIMED_OUT":
        monkeypatch.setattr("apps.lookup.git.objects.SECONDS", 0.2)
    monkeypatch.setenv("PATH", f"{program(tmp_path / 'bin', script)}:{os.environ['PATH']}")
    status, answer = ask()
    assert (status, answer["error"]) == (503, code)


def test_a_folder_without_commits_has_no_history(folder: Path, ask: Ask) -> None:
    path = init(folder / "repo")
    write_files(path, {"a.py": TEXT})
    ingest(path)
    assert ask()[1]["error"] == "NO_HISTORY"
    shutil.rmtree(path / ".git")
    assert ask()[1]["error"] == "NO_HISTORY"
    run_ingest(path, plain_folder=True)
    assert ask()[1]["error"] == "NO_HISTORY"


def test_a_part_of_a_work_tree_has_its_own_history(folder: Path, ask: Ask) -> None:
    path = init(folder / "whole")
    write_files(path, {"repo/a.py": TEXT, "top.py": TEXT})
    commit_all(path, "Both")
    write_files(path, {"top.py": "x = 1\n"})
    commit_all(path, "Only the top")
    ingest(path / "repo")
    assert [row["message"] for row in ask()[1]["results"]] == ["Both"]
    assert [row["endLine"] for row in ask(of="blame", path="a.py")[1]["results"]] == [5]
    rows = ask(of="diff", to="HEAD~1")[1]["results"]
    assert [row["relPath"] for row in rows] == ["a.py"]


def test_a_file_of_a_nested_repository_has_its_history(repository: Path, ask: Ask) -> None:
    inner = init(repository / "lib/inner")
    write_files(inner, {"b.py": TEXT})
    commit_all(inner, "Inner")
    ingest(repository)
    for form in ({"path": "lib/inner/b.py"}, {"path": "lib/inner"}):
        assert [row["message"] for row in ask(**form)[1]["results"]] == ["Inner"]
    assert ask(of="blame", path="lib/inner/b.py")[1]["results"][0]["message"] == "Inner"
    (row,) = ask(of="diff", path="lib/inner", to="HEAD")[1]["results"]
    assert row["relPath"] == "lib/inner/b.py"


def test_a_linked_worktree_has_its_own_head(repository: Path, folder: Path, ask: Ask) -> None:
    repository.rename(folder / "main")
    git(folder / "main", "worktree", "add", "-q", "-b", "topic", str(folder / "repo"), "HEAD~1")
    ingest(folder / "repo")
    assert [row["message"] for row in ask()[1]["results"]] == ["First"]
    assert len(ask(to="main")[1]["results"]) == 2
