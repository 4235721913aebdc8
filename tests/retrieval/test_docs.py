"""The tables of docs/retrieval.md name tests that exist and that use HTTP."""

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FOLDERS = (HERE, HERE.parent / "tools")
DOCS = HERE.parent.parent / "docs" / "retrieval.md"
NAMED = re.findall(r"`(test_\w+\.py)::(test_\w+)`", DOCS.read_text())
# Fixtures whose use is an HTTP request.
DOORS = {"ask", "client"}


def functions(file: str) -> dict[str, ast.FunctionDef]:
    path = next(folder / file for folder in FOLDERS if (folder / file).exists())
    tree = ast.parse(path.read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_tables_of_the_docs_name_tests() -> None:
    rows = [line for line in DOCS.read_text().splitlines() if re.match(r"\| [\d–]", line)]
    assert len(rows) == len(NAMED) > 40


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED)))
def test_each_named_test_exists_and_uses_http(file: str, name: str) -> None:
    test = functions(file)[name]
    arguments = {argument.arg for argument in test.args.args}
    used = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    assert arguments & DOORS & used


def test_every_rule_that_is_tested_is_in_the_table() -> None:
    assert set(functions("test_rules.py")) - {"texts", "fill_file", "score_lines"} == {
        name for file, name in NAMED if file == "test_rules.py"
    }
