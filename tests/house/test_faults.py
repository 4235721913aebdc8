"""docs/faults.md names tests that there are, and leaves no fault out."""

import ast
import re

import pytest

from tests.house.sources import HOME

pytestmark = pytest.mark.door

TABLE = (HOME / "docs/faults.md").read_text()
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", TABLE)


def names_in(file: str) -> set[str]:
    tree = ast.parse((HOME / file).read_text())
    found = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name for node in found}


def test_every_named_test_exists() -> None:
    known = {file: names_in(file) for file, _ in NAMED}
    assert [f"{file}::{name}" for file, name in NAMED if name not in known[file]] == []


def test_every_row_names_a_test_or_the_lack_of_one() -> None:
    rows = [row for row in TABLE.splitlines() if re.match(r"\| \d+ ", row)]
    assert [int(row.split()[1]) for row in rows] == list(range(1, 25))
    assert [row for row in rows if "::test_" not in row and "Not yet: " not in row] == []
