"""Rooms stay small enough to be read in one go (the bars of CONTRIBUTING.md)."""

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.sources import name_of, product

pytestmark = pytest.mark.door

MAX_FILE, MAX_FUNCTION, LONG_FUNCTION = 400, 80, 60
BLIND_EXCEPT = re.compile(r"except (Exception|BaseException)\b|except:")
# The doors at which anything unforeseen is logged and turned into a typed outcome.
BLIND_DOORS = {
    "apps/conversations/runner.py",
    "apps/index/vectors/chroma.py",
    "apps/ingest/runs/queue.py",
    "apps/ingest/watching/watcher.py",
    "apps/mcp/rpc.py",
    "apps/site/management/commands/serve.py",
    "manage.py",
}


def functions(file: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            yield f"{name_of(file)}:{node.lineno} {node.name}", length


def test_no_file_is_over_its_bar() -> None:
    lengths = {name_of(file): len(file.read_text().splitlines()) for file in product()}
    assert {name: n for name, n in lengths.items() if n > MAX_FILE} == {}
    assert statistics.median(lengths.values()) <= 110


def test_no_function_is_over_its_bar() -> None:
    lengths = dict(entry for file in product() for entry in functions(file))
    assert {name: n for name, n in lengths.items() if n > MAX_FUNCTION} == {}
    assert statistics.median(lengths.values()) <= 10
    long = [name for name, n in lengths.items() if n > LONG_FUNCTION]
    assert len(long) <= len(lengths) / 100, long


def test_only_the_doors_catch_everything() -> None:
    found = {name_of(file) for file in product() if BLIND_EXCEPT.search(file.read_text())}
    assert found <= BLIND_DOORS
