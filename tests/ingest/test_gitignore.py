"""`.gitignore` files leave out what git leaves out, and no pattern costs more than its length."""

import errno
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from apps.index.root_directory import RootDirectory
from apps.ingest.discovery import gitignore
from apps.ingest.discovery.discovery import discover
from apps.ingest.types import Skipped
from tests.ingest.discovered import names, reasons
from tests.support.git import git, init
from tests.support.ingested import write_files

pytestmark = pytest.mark.door

# Each line, with the negation, the slash or the wildcard that matters, is tried on every path.
PATTERNS = r"""
*.py
/top.py
top.py
sub/
sub
/sub/
sub/*
sub/**
sub/**/deep
**/deep
**/deep/
**/deep/*.py
sub/*/c.py
*/c.py
**
*
*/
/*
a?.py
a[bc].py
a[!b].py
a[^b].py
[[:alpha:]][[:digit:]].py
[z-a].py
a[
a[b
\!odd.py
\#odd.py
#odd.py
!odd.py
a\*.py
a*b*.py
s*/d*/c.p?
sub//
//
/
!
ü*.py
?.py
??.py
*b.py*
**b.py
sub**deep
sub/**/
s[u/x]b
[^/]ub/*c.py
sub/d*p/c.py
*b/c*
s*b/[a-z]*
*\.py
*.p[xy]
?[p]*\.p?
""".strip("\n").split("\n")

FILES = [
    "top.py", "ab.py", "ac.py", "a*.py", "a1.py", "a[", "!odd.py", "#odd.py", "odd.py ", "ü.py",
    "z.py", "sub/top.py", "sub/ab.py", "sub/deep/c.py", "sub/deep/er/c.py", "deep/c.py", "sub/sub",
    "subdeep", "x/sub/y.py",
]  # fmt: skip

COMBINED = [
    "odd.py\\ ",
    "ab.py   ",
    "*\n!*/\n!*.py\n",
    "sub/*\n!sub/deep/\n",
    "sub/\n!sub/top.py\n",
    "*.py\n!top.py\n/top.py\n",
    "**/deep/**\n!**/c.py\n",
    "/*\n!/sub\n/sub/*\n!/sub/deep\n",
    "*.py\r\n!ab.py\r\n",
    "\ufeff*.py\n",
    "deep\n!deep\n",
]


def ignored_by_git(folder: Path) -> set[str]:
    """The files that `git add .` would leave out."""
    listing = git(folder, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    return set(filter(None, listing.split("\0")))


def left_out(folder: Path) -> set[str]:
    """The files that discovery leaves out, each by name."""
    found = reasons(discover(folder, plain=True))
    ignored = [path for path, reason in found.items() if reason == "Ignored by .gitignore"]
    return {
        path
        for path in FILES
        if any(path == each or path.startswith(each) and each.endswith("/") for each in ignored)
    }


@pytest.mark.parametrize("text", [*PATTERNS, *COMBINED])
def test_the_same_files_are_ignored_as_by_git(folder: Path, text: str) -> None:
    write_files(init(folder), dict.fromkeys(FILES, "x = 1\n") | {".gitignore": text})
    assert left_out(folder) == ignored_by_git(folder) & set(FILES)


def test_half_a_character_matches_as_in_git(folder: Path) -> None:
    write_files(init(folder), dict.fromkeys(FILES, "x = 1\n"))
    (folder / ".gitignore").write_bytes("*ü.py\n".encode().replace(b"\xc3", b""))
    assert left_out(folder) == {"ü.py"}


def test_the_nearest_file_decides(folder: Path) -> None:
    write_files(init(folder), dict.fromkeys(FILES, "x = 1\n"))
    write_files(folder, {".gitignore": "*.py\n", "sub/.gitignore": "!ab.py\n/deep/er\n"})
    write_files(folder, {"sub/deep/.gitignore": "!*.py\n"})
    assert left_out(folder) == ignored_by_git(folder) & set(FILES)


# One line each that takes a backtracking matcher for ever.
FREEZING = {
    "the recipe": "*a*a*a*a*a*a*a*a*a*a*b",
    "as long as may be": "*a" * 40 + "b",
    "folders": "**/a/" * 19 + "b",
    "classes": "[a-z]*" * 19 + "B",
    "question marks": "*" + "a?" * 39 + "b",
    "a hundred thousand lines": "*a*a*a*a*b\n" * 100_000,
    "as many as may be": "*a*a*a*a*a*a*a*a*a*b\n" * 400,
    "one long line": "a" * 1_000_000,
    "one long class": "[" + "a-z" * 300_000,
}
RUN = """
import django; django.setup()
import sys; from pathlib import Path
from apps.ingest.discovery.discovery import discover
found = discover(Path(sys.argv[1]))
print(len(found.files) + len(found.skipped))
"""


@pytest.mark.fault("Slow patterns and deep folders")
@pytest.mark.parametrize("name", FREEZING)
def test_no_pattern_freezes_an_ingest(folder: Path, name: str) -> None:
    """In a process of its own, since nothing but kill -9 would end it."""
    deep = "/".join(["a"] * 60)
    write_files(
        folder,
        {
            ".gitignore": FREEZING[name],
            "a" * 200: "x",
            "a" * 200 + ".py": "x",
            f"{deep}/{'a' * 200}.py": "x",
        },
    )
    done = subprocess.run(
        [sys.executable, "-c", RUN, folder], capture_output=True, timeout=60, check=True
    )
    assert int(done.stdout) == 4


def peak_of_files_in_each_other(folder: Path, depth: int) -> int:
    """The bytes that a discovery of folders in each other needs, each with many patterns."""
    lines = [f"{level}_{number}\n" for level in range(depth) for number in range(500)]
    texts = {"a/" * n + ".gitignore": "".join(lines[500 * n :][:500]) for n in range(depth)}
    write_files(folder, texts)
    tracemalloc.start()
    try:
        assert len(discover(folder).files) == depth
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.fault("Slow patterns and deep folders")
def test_files_in_folders_in_each_other_take_no_more_memory_than_beside_each_other(
    folder: Path,
) -> None:
    some, more = (peak_of_files_in_each_other(folder / str(n), n) for n in (20, 80))
    assert more < 6 * some


@pytest.mark.fault("Slow patterns and deep folders")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("*.py\n" + "x\n" * gitignore.MAX_LINES, gitignore.TOO_MANY_LINES),
        ("*.py\n" + "# a comment\n" * 10_000, gitignore.TOO_LONG),
        ("*.py\n" + "?" * 41, gitignore.TOO_COMPLEX),
        ("*.py\n" + "x" * 501, gitignore.TOO_COMPLEX),
        ("*.py\n" + ("?" * 40 + "\n") * 100, gitignore.TOO_MANY_WILDCARDS),
    ],
)
def test_what_is_beyond_a_limit_does_not_count_and_is_listed(
    folder: Path, text: str, reason: str
) -> None:
    write_files(folder, {".gitignore": text, "a.py": "x", "a.md": "x"})
    found = discover(folder)
    assert names(found) == ["a.md"]
    assert reasons(found) == {".gitignore": reason, "a.py": "Ignored by .gitignore"}


def test_the_wildcards_of_all_files_that_speak_for_a_folder_count_together(folder: Path) -> None:
    lines = ("?" * 40 + "\n") * 60
    write_files(folder, {".gitignore": lines, "b/a.py": "x", "b/.gitignore": lines})
    write_files(folder, {"c/.gitignore": "*.py", "c/a.py": "x"})
    found = discover(folder)
    assert names(found) == [".gitignore", "b/a.py", "c/.gitignore"]
    assert reasons(found)["b/.gitignore"] == gitignore.TOO_MANY_WILDCARDS


@pytest.mark.fault("Files cannot be read")
def test_a_folder_whose_gitignore_cannot_be_read_is_not_gone_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"a/.gitignore": "left.py\n", "a/left.py": "1\n", "b.py": "1\n"})
    real = RootDirectory.open

    def refused(self: RootDirectory, path: str) -> tuple[int, os.stat_result]:
        if path == "a/.gitignore":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(self, path)

    monkeypatch.setattr(RootDirectory, "open", refused)
    found = discover(tmp_path)
    assert names(found) == ["b.py"]
    assert found.skipped == (Skipped("a/", "Its ignore files cannot be read", 0, unreadable=True),)


def test_a_folder_of_that_name_has_no_rules(tmp_path: Path) -> None:
    write_files(tmp_path, {".gitignore/x.py": "1\n", "b.py": "1\n"})
    assert names(discover(tmp_path)) == [".gitignore/x.py", "b.py"]
