"""The list that is read from a repository's files is the one that git gives, or none."""

import hashlib
import os
import random
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.core.errors import Unavailable
from apps.ingest.discovery.discovery import discover
from apps.ingest.discovery.git_index import read_index
from apps.ingest.discovery.repository import find_repository
from tests.ingest.discovered import names, reasons
from tests.support.git import commit_all, git, init, listed
from tests.support.ingested import write_files

pytestmark = pytest.mark.door

FILES = {"a.py": "a = 1\n", "sub/b.py": "b = 1\n", "sub/deep/c.py": "c = 1\n", "z.py": "z = 1\n"}


def ours(folder: Path) -> list[str]:
    repository = find_repository(folder)
    assert repository is not None
    return sorted(read_index(repository, folder).entries)


def refusal(folder: Path) -> str:
    """Why discovery refuses a folder."""
    with pytest.raises(Unavailable) as caught:
        discover(folder)
    assert (caught.value.code, caught.value.retryable) == ("GIT_FAILED", False)
    return caught.value.message


@pytest.fixture
def repo(folder: Path) -> Path:
    repository = write_files(init(folder / "repo"), FILES)
    commit_all(repository)
    return repository


def version(number: int) -> Callable[[Path], object]:
    return lambda repo: git(repo, "update-index", "--index-version", str(number))


def in_conflict(repo: Path) -> None:
    git(repo, "checkout", "-qb", "other")
    write_files(repo, {"a.py": "other\n"})
    commit_all(repo)
    git(repo, "checkout", "-q", "-")
    write_files(repo, {"a.py": "mine\n"})
    commit_all(repo)
    with pytest.raises(subprocess.CalledProcessError):
        git(repo, "merge", "other")
    assert git(repo, "ls-files", "-u").count("a.py") == 3


def odd_names(repo: Path) -> None:
    odd = ["ü.py", "two\nlines.py", " .py", "日本/語.py", os.fsdecode(b"caf\xe9.py"), "x" * 250]
    write_files(repo, dict.fromkeys(odd, "x"))
    git(repo, "add", ".")


def skip_worktree(repo: Path) -> None:
    git(repo, "update-index", "--skip-worktree", "a.py")


def intent_to_add(repo: Path) -> None:
    write_files(repo, {"soon.py": "x"})
    git(repo, "add", "-N", "soon.py")


def sparse_checkout(repo: Path) -> None:
    git(repo, "sparse-checkout", "set", "--cone", "sub")


def without_checksum(repo: Path) -> None:
    """As `index.skipHash` has newer versions of git write it."""
    index = repo / ".git/index"
    index.write_bytes(index.read_bytes()[:-20] + bytes(20))


def fewer(repo: Path) -> None:
    git(repo, "rm", "-q", "--cached", "-r", ".")


@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize(
    "change",
    [
        None,
        in_conflict,
        odd_names,
        skip_worktree,
        intent_to_add,
        sparse_checkout,
        without_checksum,
        fewer,
    ],
)
def test_the_list_is_that_of_git(
    repo: Path, number: int, change: Callable[[Path], None] | None
) -> None:
    version(number)(repo)
    if change:
        change(repo)
    assert ours(repo) == listed(repo)
    assert ours(repo / "sub") == listed(repo / "sub")


def test_a_sha256_repository_is_read(folder: Path) -> None:
    for name, zeros in (("hashed", False), ("unhashed", True)):
        repository = write_files(init(folder / name, "--object-format=sha256"), FILES)
        commit_all(repository)
        index = repository / ".git/index"
        if zeros:
            index.write_bytes(index.read_bytes()[:-32] + bytes(32))
        assert ours(repository) == sorted(FILES)


def test_a_worktree_and_a_submodule_are_read_by_their_own_index(folder: Path, repo: Path) -> None:
    git(repo, "worktree", "add", "-q", "--detach", str(folder / "tree"))
    git(folder / "tree", "rm", "-q", "a.py")
    outer = init(folder / "outer")
    git(outer, "submodule", "add", "-q", str(repo), "libs/inner")
    for root in (folder / "tree", folder / "tree/sub", outer, outer / "libs/inner"):
        assert ours(root) == listed(root)


def test_a_repository_that_was_only_begun_tracks_nothing(folder: Path) -> None:
    assert ours(init(folder)) == []


def test_the_nearest_repository_counts(folder: Path, repo: Path) -> None:
    inner = write_files(init(repo / "inner"), {"own.py": "x"})
    git(inner, "add", ".")
    assert ours(inner) == ["own.py"]


@pytest.mark.fault("A git repository that is not read")
@pytest.mark.parametrize("stray", [{}, {"notes.txt": "x"}])
def test_a_git_folder_that_holds_no_repository_ends_the_search(
    repo: Path, stray: dict[str, str]
) -> None:
    """git would go on to the outer repository, or to none, and say nothing."""
    (repo / "sub/.git").mkdir()
    write_files(repo / "sub/.git", stray)
    for folder in (repo / "sub", repo / "sub/deep"):
        assert f"{repo}/sub/.git holds no repository" in refusal(folder)
    assert names(discover(repo)) == sorted(FILES)


@pytest.mark.fault("A git repository that is not read")
def test_a_worktree_whose_repository_has_gone_is_refused(folder: Path, repo: Path) -> None:
    git(repo, "worktree", "add", "-q", "--detach", str(folder / "tree"))
    copied = shutil.copytree(repo / ".git/worktrees/tree", folder / "kept")
    write_files(copied, {"commondir": str(folder / "gone")})
    write_files(folder / "tree", {".git": f"gitdir: {copied}\n"})
    assert "belongs to a repository that is not there" in refusal(folder / "tree")


def test_a_head_that_git_takes_is_taken(repo: Path) -> None:
    head = repo / ".git/HEAD"
    for content in ("ref: refs/heads/none-yet\n", "ref:refs/x", git(repo, "rev-parse", "HEAD")):
        head.write_text(content)
        assert ours(repo) == listed(repo)
    head.unlink()
    head.symlink_to("refs/heads/none-yet")
    assert ours(repo) == sorted(FILES)


def test_a_folder_that_is_not_checked_out_is_listed_once(repo: Path) -> None:
    write_files(repo, {"other/x/d.py": "x", "other/e.py": "x"})
    commit_all(repo)
    git(repo, "sparse-checkout", "set", "--cone", "--sparse-index", "sub")
    found = discover(repo)
    assert names(found) == ["a.py", "sub/b.py", "sub/deep/c.py", "z.py"]
    assert reasons(found) == {"other/": "Not checked out"}
    for inside in ("other", "other/x"):
        (repo / inside).mkdir()
        assert reasons(discover(repo / inside)) == {"./": "Not checked out"}


def test_a_split_index_is_refused_with_the_way_out(repo: Path) -> None:
    git(repo, "update-index", "--split-index")
    assert "git update-index --no-split-index" in refusal(repo)
    git(repo, "update-index", "--no-split-index")
    assert names(discover(repo)) == sorted(FILES)


def test_a_bare_repository_is_refused(folder: Path, repo: Path) -> None:
    git(folder, "clone", "-q", "--bare", str(repo), "bare")
    assert "is bare" in refusal(folder / "bare")
    assert "is bare" in refusal(repo / ".git")


@pytest.mark.parametrize(
    "content", [b"", b"elsewhere\n", b"gitdir: \0", b"gitdir: nowhere\n", b"gitdir: " + b"x" * 9000]
)
def test_a_pointer_that_leads_nowhere_is_refused(folder: Path, content: bytes) -> None:
    write_files(folder, {".git": content, "a.py": "x"})
    assert "is broken" in refusal(folder)


@pytest.mark.fault("Links and special files")
def test_an_index_that_is_no_file_is_refused_and_not_waited_for(repo: Path) -> None:
    index = repo / ".git/index"
    index.rename(repo / "kept")
    os.mkfifo(index)
    assert "cannot be read" in refusal(repo)
    index.unlink()
    index.symlink_to(repo / "kept")
    assert "cannot be read: Symbolic link" in refusal(repo)


def test_an_index_beyond_the_limits_is_refused(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("apps.ingest.discovery.git_index.MAX_ENTRIES", 3)
        assert "is too large" in refusal(repo)
    monkeypatch.setattr("apps.ingest.discovery.git_index.MAX_INDEX_BYTES", 100)
    assert "is too large" in refusal(repo)


STRANGER = 12345


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """give(path): as if it belonged to a stranger, which only root could make true."""
    real = Path.lstat

    def giving(path: Path) -> None:
        def lstat(self: Path) -> os.stat_result:
            found = list(real(self))
            return os.stat_result([*found[:4], STRANGER, *found[5:]] if self == path else found)

        monkeypatch.setattr(Path, "lstat", lstat)

    return giving


@pytest.mark.fault("A hostile repository")
@pytest.mark.parametrize("foreign", [".", ".git"])
def test_a_repository_of_another_user_is_refused_unless_its_folder_is_trusted(
    repo: Path, foreign: str, give: Callable[[Path], None], configure: Callable[..., None]
) -> None:
    give(repo / foreign)
    refusal_text = refusal(repo)
    assert "belongs to another user" in refusal_text and "CODEINFO_TRUSTED_FOLDERS" in refusal_text
    assert "belongs to another user" in refusal(repo / "sub")
    configure(trusted_folders=(repo.parent / "elsewhere", repo))
    assert names(discover(repo)) == sorted(FILES)


@pytest.mark.parametrize(("user", "refused"), [(0, False), (54321, True)])
def test_root_reads_the_repositories_of_the_user_who_called_sudo(
    repo: Path,
    configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    user: int,
    refused: bool,
) -> None:
    """Every other user reads only their own."""
    configure(sudo_uid=os.geteuid())
    monkeypatch.setattr(os, "geteuid", lambda: user)
    if refused:
        assert "belongs to another user" in refusal(repo)
    else:
        assert names(discover(repo)) == sorted(FILES)


def test_a_link_to_a_repository_is_followed_to_its_owner(
    folder: Path, repo: Path, give: Callable[[Path], None]
) -> None:
    write_files(folder / "linked", FILES)
    (folder / "linked/.git").symlink_to(repo / ".git")
    assert names(discover(folder / "linked")) == sorted(FILES)
    give(repo / ".git")
    assert "belongs to another user" in refusal(folder / "linked")


def test_the_path_of_a_refused_repository_need_not_be_utf8(
    folder: Path, repo: Path, give: Callable[[Path], None]
) -> None:
    odd = folder / os.fsdecode(b"caf\xe9")
    (repo / ".git").rename(odd)
    (repo / ".git").write_bytes(b"gitdir: " + os.fsencode(odd))
    give(odd)
    assert "/caf?" in refusal(repo).encode().decode()


def test_a_folder_without_a_repository_may_be_anybodys(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(folder, {"a.py": "x"})
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert names(discover(folder)) == ["a.py"]


def with_checksum(data: bytes) -> bytes:
    """The index with a checksum that fits."""
    return data + hashlib.sha1(data).digest()


def entry(name: bytes, mode: int = 0o100644, flags: int = 0, extended: bytes = b"") -> bytes:
    head = struct.pack(">6L", *([0] * 6)) + struct.pack(">L", mode) + struct.pack(">3L", 0, 0, 0)
    head += bytes(20) + struct.pack(">H", flags | min(len(name), 0xFFF)) + extended
    return head + name + bytes(8 - (len(head) + len(name)) % 8)


def index_of(*entries: bytes, number: int = 2, tail: bytes = b"") -> bytes:
    head = b"DIRC" + struct.pack(">2L", number, len(entries))
    return with_checksum(head + b"".join(entries) + tail)


def test_an_index_written_by_hand_is_read(repo: Path) -> None:
    """Otherwise the refusals below would show nothing."""
    (repo / ".git/index").write_bytes(index_of(entry(b"a.py"), entry(b"z.py")))
    assert ours(repo) == listed(repo) == ["a.py", "z.py"]


OUTSIDE = [
    b"../secret.py", b"/etc/passwd", b"sub/../../secret.py", b"a\0b.py", b"", b"sub//b.py",
    b".git/config", b"sub/.GIT/config", b"./a.py", b"..", b"sub/b.py/",
]  # fmt: skip


@pytest.mark.fault("A path that leads outside")
@pytest.mark.parametrize("name", OUTSIDE)
def test_a_path_that_leads_outside_refuses_the_repository(repo: Path, name: bytes) -> None:
    write_files(repo.parent, {"secret.py": "x"})
    (repo / ".git/index").write_bytes(index_of(entry(b"a.py"), entry(name)))
    refusal(repo)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"DIRC",
        index_of(entry(b"a.py"))[:-1],
        with_checksum(b"DIRC" + struct.pack(">2L", 9, 0)),
        with_checksum(b"DIRC" + struct.pack(">2L", 2, 1 << 31)),
        index_of(entry(b"x" * 5000)),
        index_of(entry(b"a"), tail=b"abcd" + struct.pack(">L", 0)),
        index_of(entry(b"a"), tail=b"TREE" + struct.pack(">L", 1 << 30)),
        index_of(entry(b"dir/", mode=0o040000)),
    ],
)
def test_a_malformed_index_is_refused(repo: Path, data: bytes) -> None:
    (repo / ".git/index").write_bytes(data)
    refusal(repo)


@pytest.mark.fault("A hostile repository")
@pytest.mark.parametrize("number", [2, 3, 4])
def test_no_bytes_are_a_bug_or_a_list_that_is_short(repo: Path, number: int) -> None:
    """Truncated or changed anywhere, with and without a checksum that fits."""
    skip_worktree(repo)
    version(number)(repo)
    index = repo / ".git/index"
    whole = index.read_bytes()
    chance = random.Random(number)
    for length in range(len(whole)):
        index.write_bytes(whole[:length])
        refusal(repo)
    for _ in range(600):
        changed = bytearray(whole)
        changed[chance.randrange(len(whole) - 20)] ^= 1 << chance.randrange(8)
        index.write_bytes(changed)
        refusal(repo)
        index.write_bytes(with_checksum(bytes(changed[:-20])))
        try:
            ours(repo)
        except Unavailable as error:
            assert error.code == "GIT_FAILED"


def test_a_long_path_of_a_compressed_index_does_not_freeze(repo: Path) -> None:
    """Joined byte by byte, 30 MB of it take longer than anybody waits."""
    head = entry(b"a")[:62]
    data = b"DIRC" + struct.pack(">2L", 4, 1) + head + b"\0" + b"x" * 30_000_000
    (repo / ".git/index").write_bytes(with_checksum(data))
    assert "damaged" in refusal(repo)


def test_the_files_of_a_copy_are_listed_without_the_objects(folder: Path, repo: Path) -> None:
    """Nothing of a repository but its index is read: neither objects nor configuration."""
    copy = shutil.copytree(repo, folder / "copy")
    shutil.rmtree(copy / ".git/objects")
    (copy / ".git/objects").mkdir()
    os.mkfifo(copy / ".git/config.fifo")
    (copy / ".git/config").unlink()
    (copy / ".git/config").symlink_to("config.fifo")
    assert ours(copy) == sorted(FILES)
