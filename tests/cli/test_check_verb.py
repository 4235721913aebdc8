"""`codeinfo check`."""

import pytest

from tests.cli.command import Command
from tests.support.ingested import SAMPLE

pytestmark = pytest.mark.door

PATH = "src/retry.py"
QUOTE = "\n".join(SAMPLE[PATH].split("\n")[5:8])
NOTES = f"`{PATH}:2-4` doubles:\n\n```python\n{QUOTE}\n```\n"


def test_check_shows_what_has_become_of_each_citation(cli: Command) -> None:
    notes = cli.home / "notes.md"
    notes.write_text(NOTES)
    done = cli.run("check", str(notes), cwd=cli.lighthouse)
    assert done.stdout.split() == ["moved", f"{PATH}:2-4", "->", f"{PATH}:6"]
    assert done.stderr.strip() == "1 citation, 1 still holds"
    notes.write_text(NOTES.replace("2**", "3**"))
    done = cli.run("check", str(notes), cwd=cli.lighthouse, status=1)
    assert done.stdout.split() == ["not_found", f"{PATH}:2-4"]


def test_check_without_citations_ends_with_1(cli: Command) -> None:
    notes = cli.home / "notes.md"
    notes.write_text("Nothing.\n")
    done = cli.run("check", str(notes), cwd=cli.lighthouse, status=1)
    assert done.stderr.startswith("No citation was found.")
    notes.write_text("x" * 100_001)
    assert "more than 100,000 bytes" in cli.run("check", str(notes), status=2).stderr
