"""`codeinfo impact`."""

from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.lookup.impact.conftest import diff_of
from tests.support.git import commit_all, git, init
from tests.support.ingested import write_files

pytestmark = pytest.mark.door

RETRY = "def again():\n    return 1\n\n\ndef twice():\n    return again() + again()\n"
TEST = "from retry import twice\n\n\ndef test_twice():\n    assert twice() == 2\n"


@pytest.fixture
def jetty(cli: Command) -> Path:
    """A repository without changes."""
    folder = cli.home / "src" / "jetty"
    if not (folder / ".git").exists():
        write_files(init(folder), {"retry.py": RETRY, "tests/test_retry.py": TEST})
        commit_all(folder, "Try again")
        cli.run("ingest", str(folder))
    git(folder, "checkout", "-q", ".")
    return folder


def test_impact_shows_what_a_change_reaches(cli: Command, jetty: Path) -> None:
    write_files(jetty, {"retry.py": RETRY.replace("return 1", "return 3")})
    lines = cli.lines("impact", cwd=jetty)
    assert lines[:2] == ["Changed", "  retry.py:1  body again"]
    assert "  retry.py:6  twice -> again" in lines
    assert "  tests/test_retry.py:5  test_twice -> twice -> again" in lines
    answer = cli.json("impact", "--base", "HEAD", "-d", "1", cwd=jetty)
    assert {row["kind"] for row in answer["results"]} >= {"changed", "caller", "test"}


def test_impact_of_a_patch(cli: Command, jetty: Path) -> None:
    write_files(jetty, {"retry.py": RETRY.replace("return 1", "return 3")})
    patch = cli.home / "change.patch"
    patch.write_text(diff_of(jetty))
    git(jetty, "checkout", "-q", ".")
    lines = cli.lines("impact", "jetty", "--patch", str(patch), cwd=cli.home)
    assert "  jetty/retry.py:1  body again" in [
        line.replace("src/jetty", "jetty") for line in lines
    ]


def test_impact_ends_with_1_if_nothing_has_changed(cli: Command, jetty: Path) -> None:
    done = cli.run("impact", cwd=jetty, status=1)
    assert (done.stdout, done.stderr.strip()) == ("", "Nothing differs from HEAD.")


def test_a_patch_that_cannot_be_read_is_an_error(cli: Command, jetty: Path) -> None:
    empty = cli.home / "empty.patch"
    empty.write_text("\n")
    for name, message in (("nowhere.patch", "cannot be read"), (str(empty), "is empty")):
        assert message in cli.run("impact", "--patch", name, cwd=jetty, status=2).stderr
    empty.write_text("no diff\n")
    done = cli.run("impact", "--patch", str(empty), cwd=jetty, status=2)
    assert "patch must be a unified diff" in done.stderr
