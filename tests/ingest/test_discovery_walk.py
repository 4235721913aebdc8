"""A folder outside any repository is walked; what is left out is listed with its reason."""

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.core.errors import InvalidInput, NotFound
from apps.index import root_directory
from apps.index.root_directory import RootDirectory
from apps.ingest.discovery.discovery import discover
from tests.ingest.discovered import names, reasons
from tests.support.ingested import write_files

KNOWN = """
    a.py web/a.tsx web/a.vue web/a.css web/a.html infra/main.tf api/a.proto db/a.sql a.graphql
    a.swift a.dart a.lua a.R a.jl a.exs a.erl a.hs a.ml a.zig a.nim a.pl Dockerfile
    docker/Dockerfile.dev Makefile .gitignore Jenkinsfile Gemfile CMakeLists.txt LICENSE README
    README.md .env.example go.mod
    """


def test_code_prose_and_settings_are_found_by_extension_and_by_whole_name(folder: Path) -> None:
    expected = KNOWN.split()
    write_files(folder, dict.fromkeys(expected, "text\n"))
    found = discover(folder)
    assert names(found) == sorted(expected)
    assert found.skipped == ()


def test_a_candidate_carries_the_size_and_time_of_its_file(folder: Path) -> None:
    write_files(folder, {"a.py": "x = 1\n"})
    os.utime(folder / "a.py", ns=(1, 1_700_000_000_123_456_789))
    (candidate,) = discover(folder).files
    assert (candidate.stat.size, candidate.stat.mtime_ns) == (6, 1_700_000_000_123_456_789)


@pytest.mark.fault("Huge, minified and binary files")
@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("photo.png", b"\x89PNG", "Binary"),
        ("blob.odd", bytes(range(1, 256)), "Binary"),
        ("run.log", "started", "Log"),
        ("a.py", b"x = 1\0", "Binary"),
        ("a.py", "", "Empty"),
        ("a.py", " \r\n\t\n", "Empty"),
        (".env", "KEY=1", "Secret"),
        (".env.production", "KEY=1", "Secret"),
        ("config/.npmrc", "//r/:_authToken=x", "Secret"),
        (".netrc", "machine x", "Secret"),
        (".pypirc", "[pypi]", "Secret"),
        ("deploy/id_rsa", "x", "Secret"),
        ("tls/server.key", "x", "Secret"),
        ("tls/server.PEM", "x", "Secret"),
        ("app.keystore", "x", "Secret"),
        (".aws/credentials", "[default]", "Secret"),
        ("prod.tfvars", "x = 1", "Secret"),
        ("note.txt", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n", "Secret"),
        ("package-lock.json", "{}", "Generated"),
        ("poetry.lock", "x", "Generated"),
        ("app.min.js", "x", "Generated"),
        ("app.js.map", "{}", "Generated"),
        ("api.pb.go", "package x", "Generated"),
        ("a.py~", "x = 1\n", "Generated"),
        ("#a.py#", "x = 1\n", "Generated"),
        ("bundle.js", "var a=1;" * 2000, "Minified"),
        ("huge.py", "x = 1\n" * 200_000, "Too large: over 1 MB"),
        ("many.txt", "line\n" * 250_000, "Too large: over 1 MB"),
    ],
)
def test_what_is_no_text_for_people_is_skipped_with_its_reason(
    folder: Path, name: str, content: str | bytes, reason: str
) -> None:
    write_files(folder, {name: content})
    found = discover(folder)
    assert reasons(found) == {name: reason}
    assert found.skipped[0].size == len(content)
    assert found.files == ()


@pytest.mark.fault("Huge, minified and binary files")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes", "no hash-bang\n"),
        ("data.json", '{"a": 1, ' + '"b": 2, ' * 1000 + "}"),
        ("big.json", '{"a": 1},\n' * 20_000),
        ("rows.csv", "a,b\n"),
        ("icon.svg", "<svg/>"),
        ("words.txt", "".join(f"word{i}\n" for i in range(6_000))),
        ("words.txt", "".join(f"wört{i}\r\n" for i in range(6_000)).encode()),
        ("frequencies.txt", "".join(f"word{i}\t{i * 7}\n" for i in range(6_000))),
        ("numbers.txt", "0.25, -1.5e-3, 17\n" * 4_000),
        ("vectors.txt", ("the" + " 0.418 -0.25" * 150 + "\n") * 30),
        ("table.md", "| 1 | 2.5 | 10% |\n" * 4_000),
        ("short.js", "var a=1;" * 1000),
        ("table.js", "var rows=[" + "1,20,300," * 2000 + "];"),
        ("utf16.odd", "x = 1\n".encode("utf-16")),
        ("latin.odd", b"caf\xe9\n"),
        ("bom.py", b"\xef\xbb\xbfx = 1\n"),
        ("utf16.py", "x = 1\n".encode("utf-16")),
        ("latin.py", b"# caf\xe9\n"),
        ("late_nul.py", b"x = 1\n" * 1000 + b"\0"),
        ("essay.md", "One paragraph is one line. " * 500),
        ("few_words.txt", "".join(f"word{i}\n" for i in range(1_000))),
        ("poem.txt", "Two words\nand three here\n\n" * 2_000),
        ("one_in_ten.txt", ("word\n" * 9 + "and then a sentence\n") * 1_000),
        ("verse.txt", "床前明月光\n疑是地上霜\n" * 2_000),
        ("thai.txt", "สวัสดีชาวโลก\n" * 2_000),
        ("pins.txt", ("package==1.0 \\\n    --hash=sha256:" + "0a" * 32 + "\n") * 900),
        ("words.py", "".join(f'"word{i}",\n' for i in range(6_000))),
        ("CMakeLists.txt", "".join(f"source{i}.cpp\n" for i in range(4_000))),
        ("keys.py", 'MARK = "-----BEGIN PRIVATE KEY-----"\n'),
        ("bin/run", "#!/usr/bin/env python3\nprint()\n"),
        ("id_rsa.pub", "ssh-rsa AAAA\n"),
    ],
)
def test_odd_but_readable_files_are_kept(folder: Path, name: str, content: str | bytes) -> None:
    write_files(folder, {name: content})
    assert names(discover(folder)) == [name]


def test_an_excluded_folder_is_one_entry(folder: Path) -> None:
    write_files(
        folder, {"node_modules/a/a.js": "x", "node_modules/b.js": "x", "web/dist/c.js": "x"}
    )
    write_files(folder, {"web/logs/d.py": "x", "web/src/e.py": "x"})
    found = discover(folder)
    assert names(found) == ["web/src/e.py"]
    assert reasons(found) == {
        "node_modules/": "Excluded: node_modules/",
        "web/dist/": "Excluded: dist/",
        "web/logs/": "Excluded: logs/",
    }


def test_ingest_exclude_adds_names_folders_and_suffixes(
    folder: Path, configure: Callable[..., None]
) -> None:
    configure(ingest_exclude=("fixtures", "secret_plan.md", "*.spec.ts"))
    write_files(
        folder, {"a/fixtures/b.py": "x", "secret_plan.md": "x", "a/b.spec.ts": "x", "a/b.ts": "x"}
    )
    write_files(folder, {"node_modules/x.js": "x"})
    found = discover(folder)
    assert names(found) == ["a/b.ts"]
    assert set(reasons(found).values()) == {
        "Excluded: fixtures/",
        "Excluded: secret_plan.md",
        "Excluded: b.spec.ts",
        "Excluded: node_modules/",
    }


@pytest.mark.fault("Forged log lines, and secrets")
def test_ingest_include_replaces_the_table_but_lets_no_secret_in(
    folder: Path, configure: Callable[..., None]
) -> None:
    configure(ingest_include=("csv", ".XYZ", "Dockerfile", "env"))
    write_files(folder, {"a.csv": "x", "b.xyz": "x", "Dockerfile": "x", "c.py": "x", ".env": "x"})
    found = discover(folder)
    assert names(found) == ["Dockerfile", "a.csv", "b.xyz"]
    assert reasons(found) == {"c.py": "Not in INGEST_INCLUDE", ".env": "Secret"}


@pytest.mark.fault("Huge, minified and binary files")
def test_the_size_cap_is_a_knob(folder: Path, configure: Callable[..., None]) -> None:
    configure(ingest_max_file_bytes=1_500)
    write_files(folder, {"a.py": "#" * 1_500, "b.py": "#" * 1_501})
    found = discover(folder)
    assert reasons(found)["b.py"] == "Too large: over 1.5 kB"


def test_gitignore_files_of_every_level_are_honoured(folder: Path) -> None:
    write_files(
        folder,
        {
            ".gitignore": "*.txt\n/only_top.py\nout/\n!keep.txt\ndocs/**/draft.md\n",
            "a.txt": "x",
            "keep.txt": "x",
            "only_top.py": "x",
            "out/a.py": "x",
            "docs/x/y/draft.md": "x",
            "sub/only_top.py": "x",
            "sub/.gitignore": "!b.txt\n*.md\n/local.py\nkeep.txt\n",
            "sub/a.txt": "x",
            "sub/b.txt": "x",
            "sub/c.md": "x",
            "sub/local.py": "x",
            "sub/keep.txt": "x",
            "sub/deep/local.py": "x",
            "sub/deep/.gitignore": "!c.md",
            "sub/deep/c.md": "x",
        },
    )
    found = discover(folder)
    assert names(found) == [
        ".gitignore",
        "keep.txt",
        "sub/.gitignore",
        "sub/b.txt",
        "sub/deep/.gitignore",
        "sub/deep/c.md",
        "sub/deep/local.py",
        "sub/only_top.py",
    ]
    ignored = {path for path, reason in reasons(found).items() if reason == "Ignored by .gitignore"}
    assert ignored == {
        "a.txt", "only_top.py", "out/", "docs/x/y/draft.md", "sub/a.txt", "sub/c.md",
        "sub/local.py", "sub/keep.txt",
    }  # fmt: skip


@pytest.mark.fault("Links and special files")
def test_links_and_special_files_are_never_followed_or_opened(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    write_files(outside, {"stolen.py": "x"})
    write_files(folder, {"a.py": "x", "sub/b.py": "x"})
    (folder / "loop").symlink_to(folder)
    (folder / "out").symlink_to(outside)
    (folder / "link.py").symlink_to(outside / "stolen.py")
    (folder / "dangling.py").symlink_to(folder / "nothing")
    os.mkfifo(folder / "fifo.py")  # opening it would block for ever
    listening = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(folder)  # the path of a socket must be short
    try:
        listening.bind("socket.py")
    finally:
        os.chdir(here)
        listening.close()
    found = discover(folder)
    assert names(found) == ["a.py", "sub/b.py"]
    assert reasons(found) == {
        "loop": "Symbolic link",
        "out": "Symbolic link",
        "link.py": "Symbolic link",
        "dangling.py": "Symbolic link",
        "fifo.py": "Not a regular file",
        "socket.py": "Not a regular file",
    }


def test_a_gitignore_that_is_a_link_is_ignored(folder: Path) -> None:
    write_files(folder, {"a.py": "x", "rules": "*.py"})
    (folder / ".gitignore").symlink_to(folder / "rules")
    assert names(discover(folder)) == ["a.py", "rules"]


def test_a_broken_pattern_spoils_no_other(folder: Path) -> None:
    write_files(folder, {".gitignore": b"!\n\xff\xfe\n*.txt\n", "a.py": "x", "a.txt": "x"})
    assert names(discover(folder)) == [".gitignore", "a.py"]


def test_unreadable_files_are_skipped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused by a stand-in for the kernel, since root may read everything."""
    write_files(folder, {"a.py": "x", "closed.py": "x", "closed/b.py": "x"})
    open_file = os.open

    def refuse_open(path: str, *arguments: Any, **options: Any) -> int:
        if path in ("closed.py", "closed"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return open_file(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse_open)
    found = discover(folder)
    assert names(found) == ["a.py"]
    assert reasons(found) == {"closed.py": "Not readable", "closed/": "Not readable"}


def test_names_with_spaces_line_breaks_and_other_scripts_are_eligible(folder: Path) -> None:
    odd = ["a b.py", "line\nbreak.py", "naïve/日本語.py", "quote\"'.py", "-dash.py", "p%20.py"]
    write_files(folder, dict.fromkeys(odd, "x"))
    assert names(discover(folder)) == sorted(odd)


def test_a_name_that_is_no_utf8_is_skipped_and_shown_with_a_replacement(folder: Path) -> None:
    (folder / os.fsdecode(b"caf\xe9.py")).write_text("x")
    assert reasons(discover(folder)) == {"caf\ufffd.py": "Name is not UTF-8"}


def test_both_lists_are_sorted_by_path(folder: Path) -> None:
    write_files(folder, dict.fromkeys(["b/a.py", "b.py", "a/z.py", "B.py", "z.png", "a.png"], "x"))
    found = discover(folder)
    assert names(found) == sorted(names(found))
    assert list(reasons(found)) == sorted(reasons(found))


def test_a_folder_that_cannot_be_listed_raises(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(folder, {"a.py": "x"})
    with pytest.raises(NotFound):
        discover(folder / "missing")
    with pytest.raises(InvalidInput) as caught:
        discover(folder / "a.py")
    assert caught.value.code == "NOT_DIRECTORY"
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidInput) as caught:
        discover(folder)
    assert caught.value.code == "NOT_READABLE"


@pytest.mark.fault("Huge, minified and binary files")
def test_statuses_of_a_large_folder_are_not_in_memory_together(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(folder, {f"{number}.py": "x = 1\n" for number in range(20)})
    monkeypatch.setattr(root_directory, "MAX_STATUSES", 5)
    with RootDirectory(folder) as directory:
        entries = directory.entries("", with_status=True)
    assert sum(entry.status is not None for entry in entries) == 5
    assert len(discover(folder).files) == 20


@pytest.mark.parametrize("become", ["missing", "link", "fifo", "folder"])
def test_a_file_that_is_another_thing_since_its_folder_was_listed_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, become: str
) -> None:
    write_files(folder, {"a.py": "x = 1\n", "b.py": "y = 1\n"})
    entries = RootDirectory.entries

    def listed(self: RootDirectory, below: str, **options: bool) -> Any:
        result = entries(self, below, **options)
        file = folder / "a.py"
        if not below:
            file.unlink()
            if become == "link":
                file.symlink_to("b.py")
            elif become == "fifo":
                os.mkfifo(file)
            elif become == "folder":
                file.mkdir()
        return result

    monkeypatch.setattr(RootDirectory, "entries", listed)
    found = discover(folder)
    assert names(found) == ["b.py"]
    assert [item.path for item in found.skipped] == ["a.py"]
