"""`codeinfo ingest` of a folder outside those that may be ingested."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import Command, command
from tests.support.git import commit_all, init
from tests.support.ingested import write_files

pytestmark = pytest.mark.door


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """CODEINFO_INGEST_BASE is not set: the home folder and the checkout may be ingested."""
    with command(tmp_path_factory.mktemp("home"), CODEINFO_INGEST_BASE="") as made:
        yield made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return write_files(tmp_path.resolve() / "outside", {"outside.py": "outside = True\n"})


def test_without_a_terminal_it_is_refused_until_yes(user: Command, outside: Path) -> None:
    refused = user.run("ingest", str(outside), status=2).stderr
    assert f"{outside} is outside the folders that may be ingested: {user.home}" in refused
    assert "--yes allows it" in refused
    error = json.loads(user.run("ingest", str(outside), "--json", status=2).stdout)
    assert error["code"] == "OUTSIDE_BASE"
    done = user.run("ingest", str(outside), "--yes")
    assert done.stdout == "outside: 1 file, 1 passage\n"
    assert f"{outside} may be ingested from now on." in done.stderr
    # Once is enough.
    write_files(outside, {"more.py": "more = True\n"})
    user.run("ingest", str(outside))
    user.run("remove", "outside", "--yes")


def test_a_terminal_asks(user: Command, outside: Path) -> None:
    for answer, status in (("n\n", 2), ("\n", 2), ("y\n", 0)):
        with user.terminal("ingest", str(outside), columns=200) as terminal:
            terminal.until("Allow codeinfo to ingest it, now and later?")
            terminal.type(answer)
            assert terminal.end() == status
    assert user.lines("ls", cwd=outside) == ["outside.py"]
    user.run("remove", str(outside), "--yes")


def test_where_the_setting_decides_it_is_named(cli: Command, outside: Path) -> None:
    refused = cli.run("ingest", str(outside), "--yes", status=2).stderr
    assert "CODEINFO_INGEST_BASE" in refused
    assert "CODEINFO_INGEST_BASE" in cli.run("ingest", str(outside), status=2).stderr


def test_a_ref_of_a_folder_outside_asks_for_the_folder(user: Command, outside: Path) -> None:
    init(outside, "-b", "main")
    commit_all(outside)
    refused = user.run("ingest", f"{outside}@main", status=2).stderr
    assert f"{outside} is outside the folders that may be ingested: {user.home}" in refused
    assert "--yes allows it" in refused
    done = user.run("ingest", f"{outside}@main", "--yes")
    assert done.stdout == "outside@main: 1 file, 1 passage\n"
    user.run("remove", "outside@main", "--yes")
