"""`codeinfo overview`."""

import pytest

from tests.cli.command import Command
from tests.support.ingested import write_files

pytestmark = pytest.mark.door


def test_overview_describes_the_repository_of_the_folder(cli: Command) -> None:
    lines = cli.lines("overview", cwd=cli.lighthouse / "src")
    assert lines[0].startswith("lighthouse  ") and lines[0].endswith(" files")
    assert lines[1] == "A small service that watches ships.  ../README.md:3"
    assert "Languages" in lines and "Modules" in lines
    assert any(line.startswith("  src/  ") and "retry" in line for line in lines)
    for name in ("lighthouse", str(cli.lighthouse)):
        assert cli.lines("overview", name, cwd=cli.home)[1].endswith("lighthouse/README.md:3")
    done = cli.run("overview", "nope", status=2)
    assert "No repository 'nope' is ingested. Repositories: " in done.stderr
    assert "'harbour', 'lighthouse'" in done.stderr
    answer = cli.json("overview")
    assert (answer["repo"], answer["results"][0]["kind"]) == ("lighthouse", "readme")


def test_overview_shows_where_each_fact_stands(cli: Command) -> None:
    folder = write_files(
        cli.home / "src" / "pier",
        {"Makefile": "test:\n\tpytest\n", "pier.c": "int main(void) {\n  return 0;\n}\n"},
    )
    cli.run("ingest", str(folder))
    lines = cli.lines("overview", cwd=folder)
    assert lines[lines.index("Tests") + 1] == "  Makefile:1  make test"
    assert lines[lines.index("Entry points") + 1] == "  pier.c:1  main  main function"


def test_overview_of_a_folder_that_is_not_ingested_says_so(cli: Command) -> None:
    done = cli.run("overview", cwd=cli.home, status=2)
    assert "not ingested" in done.stderr
