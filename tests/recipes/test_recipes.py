"""The recipes of CONTRIBUTING.md, each carried out on a copy of the tree.

A recipe names the files that it changes, and a command of pytest. The patch beside this module is
what somebody writes who follows it. If one does not apply any more, carry it out by hand, and write
it again: `git add --all`, then `git diff --cached > tests/recipes/page.patch`.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.house.sources import HOME, name_of, tracked

pytestmark = pytest.mark.door

# Patch → the heading of its recipe, and what it has in place of the names in angle brackets.
RECIPES: dict[str, tuple[str, Mapping[str, str]]] = {
    "health": ("A check of health", {"check": "temporary"}),
    "language": ("A language", {"language": "gdscript", "ending": "gd"}),
    "page": ("A page", {"app": "site", "page": "languages"}),
    "provider": ("A provider", {"provider": "other"}),
}
SECONDS = 600


class Recipe(NamedTuple):
    """files: all that it names, apart from the tests that it only runs."""

    files: frozenset[str]
    tests: tuple[str, ...]


def recipe(name: str) -> Recipe:
    heading, names = RECIPES[name]
    text = (HOME / "CONTRIBUTING.md").read_text()
    text = text.partition(f"\n**{heading}.** ")[2].partition("\n\n**")[0]
    for placeholder, value in names.items():
        text = text.replace(f"<{placeholder}>", value)
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]
    (command,) = (span for span in spans if span.startswith("pytest "))
    is_path = re.compile(r"[\w.-]+(/[\w.-]+)*\.\w+|[A-Z]+").fullmatch
    files = (span for span in spans if is_path(span) and ("/" in span or (HOME / span).exists()))
    return Recipe(frozenset(files), tuple(shlex.split(command)[1:]))


def run(folder: Path, *command: str | Path) -> str:
    """What a program writes. It fails with that."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def touched(patch: Path) -> frozenset[str]:
    lines = run(HOME, "git", "apply", "--numstat", patch).splitlines()
    return frozenset(line.split("\t")[2] for line in lines)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this tree, staged in a repository of its own."""
    copy = tmp_path_factory.mktemp("recipes")
    for file in tracked():
        target = copy / name_of(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    run(copy, "git", "init", "--quiet")
    run(copy, "git", "add", "--all")
    return copy


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_names_all_files_that_it_changes_and_no_others(name: str) -> None:
    files, tests = recipe(name)
    changed = touched(HOME / f"tests/recipes/{name}.patch")
    run_files = {test.partition("::")[0] for test in tests if test.startswith("tests/")}
    assert changed - run_files == files - run_files
    assert any(test in changed for test in run_files)


@pytest.mark.parametrize("name", RECIPES)
def test_who_follows_a_recipe_passes_its_tests(tree: Path, name: str) -> None:
    run(tree, "git", "checkout", "--quiet", ".")
    run(tree, "git", "clean", "--quiet", "--force", "-d")
    run(tree, "git", "apply", "-C1", HOME / f"tests/recipes/{name}.patch")
    run(tree, "make", "--old-file=.venv/dev.stamp", f"BIN={Path(sys.executable).parent}", "fix")
    run(tree, sys.executable, "-m", "pytest", *recipe(name).tests)
