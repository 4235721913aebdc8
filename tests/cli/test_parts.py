"""Parts of the verbs that need no server."""

import json
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from codeinfo_cli import errors, options, project, scope, terminal
from codeinfo_cli.ask_verb import citations
from codeinfo_cli.clients import launch
from codeinfo_cli.file_verbs import split_lines
from codeinfo_cli.runs import facts_of


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("src/a.py", ("src/a.py", None, None)),
        ("src/a.py:7", ("src/a.py", 7, 7)),
        ("src/a.py:7-9", ("src/a.py", 7, 9)),
        ("src/a.py:7-", ("src/a.py", 7, None)),
        ("src/a.py:7:text: 8", ("src/a.py", 7, 7)),
        ("a:b.py", ("a:b.py", None, None)),
    ],
)
def test_a_path_with_lines(text: str, parts: tuple[str, int | None, int | None]) -> None:
    assert split_lines(text) == parts


def test_the_facts_of_a_run_have_the_remaining_time() -> None:
    run = {"state": "embedding", "fileIndex": 1200, "fileTotal": 4000, "etaMs": 75_200}
    assert facts_of(run) == "1,200 of 4,000 files, 1:15 left"
    assert facts_of({"state": "scanning"}) == ""


def row(repo: str, path: str, start: int, end: int) -> dict[str, object]:
    return {"repo": repo, "relPath": path, "startLine": start, "endLine": end}


def test_only_lines_that_a_tool_returned_are_citations() -> None:
    rows = [row("app", "src/a.py", 1, 20), row("app", "with blank.py", 5, 5)]
    text = (
        "See `app/src/a.py:3–4`, src/a.py:90, other/src/a.py:1, lib/src/a.py:2, "
        "app/with blank.py:5 and src/a.py:L7-L8."
    )
    assert list(citations(text, rows)) == [
        ("app/src/a.py", "3-4"),
        ("app/with blank.py", "5"),
        ("app/src/a.py", "7-8"),
    ]


def test_citations_of_a_long_word_take_linear_time() -> None:
    assert list(citations("src/a.py:" * 50_000, [row("app", "src/a.py", 1, 20)])) == []


def test_globs_are_those_of_ripgrep() -> None:
    assert options.file_filter(()) == ""
    assert options.file_filter(("*.py",)) == "*.py"
    assert options.file_filter(("a.py", "*.md")) == "{**/a.py,*.md}"
    assert options.file_filter(("*.py",), "src/[id]/") == "src/[[]id]/*.py"
    with pytest.raises(click.UsageError):
        options.file_filter(("!*.py",))


def test_the_innermost_repository_counts() -> None:
    known = [scope.Repository("outer", ("/src",)), scope.Repository("inner", ("/src/lib", "/data"))]
    assert scope.containing(known, "/src/lib/a.py") == scope.Place("inner", "a.py")
    assert scope.containing(known, "/src/library") == scope.Place("outer", "library")
    assert scope.containing(known, "/data") == scope.Place("inner", "")
    assert scope.containing(known, "/elsewhere") is None


def test_characters_that_change_a_terminal_are_escaped() -> None:
    assert terminal.visible("a\x1b[2J\u202eb\tc\n") == "a\\u001b[2J\\u202eb\tc\\u000a"
    assert terminal.visible("a\nb\r", lines=True) == "a\nb\\u000d"
    assert terminal.visible("naïve ☕") == "naïve ☕"


def test_errors_of_the_server_are_sentences() -> None:
    busy = errors.of_response(429, b'{"code": "BUSY", "message": "An ingest is in progress."}')
    assert (busy.message, busy.status) == ("An ingest is in progress.", 2)
    assert "codeinfo status" in busy.next_step
    named = errors.of_response(409, b'{"error": "INGEST_REQUIRED"}')
    assert named.message == "Nothing is ingested yet."
    details = errors.of_response(400, b'{"error": "VALIDATION_FAILED", "details": ["a", "b"]}')
    assert details.message == "a; b"
    limited = errors.of_response(429, b'{"code": "RATE_LIMITED", "message": "m", "retryAfter": 4}')
    assert limited.next_step == "Try again in 4 s."
    assert errors.of_response(502, b"<html>").message == "The server answered with HTTP status 502."


def test_a_relative_data_folder_of_the_checkout_is_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "PROJECT", tmp_path)
    monkeypatch.delenv("CODEINFO_DATA_DIR")
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / ".env").write_text("CODEINFO_DATA_DIR=./state\n")
    project.use()
    assert project.data_dir() == tmp_path / "state"


ORIGINS: dict[str, tuple[dict[str, Any] | None, str]] = {
    "an index": (None, "codeinfo"),
    "a wheel": (
        {"url": "file:///my%20src/dist/codeinfo.whl", "archive_info": {}},
        "/my src/dist/codeinfo.whl",
    ),
    "a folder": ({"url": "file:///src/app", "dir_info": {}}, "/src/app"),
    "an address": ({"url": "https://x.test/a.whl"}, "https://x.test/a.whl"),
    "a repository": (
        {"url": "https://x.test/a", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
        "git+https://x.test/a@c0ffee",
    ),
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_uvx_installs_from_where_this_installation_came(
    origin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, source = ORIGINS[origin]
    info = tmp_path / "codeinfo-9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: codeinfo\nVersion: 9\n")
    if record is not None:
        (info / "direct_url.json").write_text(json.dumps(record))
    (tmp_path / "uvx").write_text("#!/bin/sh\n")
    (tmp_path / "uvx").chmod(0o755)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(project, "IS_INSTALLED", True)
    monkeypatch.setattr(launch.sys, "prefix", str(tmp_path / "archive-v0" / "x"))
    started = launch.this_installation(tmp_path / "data")
    assert started.command == str(tmp_path / "uvx")
    alone = ("python", "-E", "-P", "-m", "codeinfo_cli", "mcp")
    assert started.args == ("--from", source, *alone)
    data = {"CODEINFO_DATA_DIR": str(tmp_path / "data")}
    assert started.env == data | {"UV_NO_ENV_FILE": "1"}
