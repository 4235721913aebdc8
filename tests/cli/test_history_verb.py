"""`codeinfo history`."""

from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.support.git import commit_all, init
from tests.support.ingested import write_files

pytestmark = pytest.mark.door


@pytest.fixture
def pier(cli: Command) -> Path:
    """A repository with two commits."""
    folder = cli.home / "src" / "pier"
    if not (folder / ".git").exists():
        write_files(init(folder), {"src/retry.py": "def again():\n    return 1\n"})
        commit_all(folder, "Try again")
        write_files(folder, {"src/retry.py": "def again():\n    return 2\n"})
        commit_all(folder, "Twice\n\nOnce was not enough.\x1b[31m")
        cli.run("ingest", str(folder))
    return folder


def test_history_lists_commits_and_shows_lines_and_changes(cli: Command, pier: Path) -> None:
    log = cli.lines("history", "src", cwd=pier)
    assert [line.strip() for line in log[1::2]] == ["Twice", "Try again"]
    lines = cli.lines("history", "-b", "src/retry.py:1-2", cwd=pier)
    assert lines[0].endswith("    1  def again():")
    assert lines[0][:10] != lines[1][:10]
    change = cli.lines("history", "-d", "--to", "HEAD", cwd=pier)
    assert "src/retry.py  modified" in change
    assert "+    return 2" in change
    assert not [line for line in change if "\x1b" in line]
    answer = cli.json("history", "-s", "again", "-n", "1", cwd=pier)
    assert [row["message"].partition("\n")[0] for row in answer["results"]] == ["Twice"]


def test_history_of_a_folder_without_git_says_so(cli: Command) -> None:
    done = cli.run("history", status=2)
    assert "has no history" in done.stderr
