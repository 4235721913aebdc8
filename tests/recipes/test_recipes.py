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
    "language": ("A language", {"language": "squirrel", "ending": "nut"}),
    "page": ("A page", {"app": "site", "page": "languages"}),
    "provider": ("A provider", {"provider": "other"}),
    "setting": ("A setting", {"app": "site", "module": "health", "setting": "home_seconds"}),
    "tool": ("A tool", {"tool": "count_languages", "Tool": "CountLanguages"}),
}
SECONDS = 600


class Recipe(NamedTuple):
    """What a paragraph names.

    files: with new tests, without those that it only runs.
    tests: arguments of pytest.
    is_generating: whether `make fix` writes something.
    """

    files: frozenset[str]
    tests: tuple[str, ...]
    is_generating: bool

    @property
    def test_files(self) -> frozenset[str]:
        return frozenset(each.partition("::")[0] for each in self.tests if "/" in each)


def recipe(name: str) -> Recipe:
    heading, names = RECIPES[name]
    text = (HOME / "CONTRIBUTING.md").read_text()
    text = text.partition(f"\n**{heading}.** ")[2].partition("\n\n**")[0]
    for placeholder, value in names.items():
        text = text.replace(f"<{placeholder}>", value)
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]
    (command,) = (span for span in spans if span.startswith("pytest "))
    files = (span for span in spans if re.fullmatch(r"\w[\w-]*(/[\w-]+)+\.\w+", span))
    return Recipe(frozenset(files), tuple(shlex.split(command)[1:]), "make fix" in spans)


def patch(name: str) -> Path:
    return HOME / f"tests/recipes/{name}.patch"


def changed_by(name: str) -> frozenset[str]:
    lines = run(HOME, "git", "apply", "--numstat", patch(name)).splitlines()
    return frozenset(line.split("\t")[2] for line in lines)


def run(folder: Path, *command: str | Path) -> str:
    """What a program writes. It fails with that."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


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
    named = recipe(name)
    assert changed_by(name) - named.test_files == named.files - named.test_files


@pytest.mark.parametrize("name", RECIPES)
def test_who_follows_a_recipe_passes_its_tests(tree: Path, name: str) -> None:
    run(tree, "git", "checkout", "--quiet", ".")
    run(tree, "git", "clean", "--quiet", "--force", "-d")
    run(tree, "git", "apply", "-C1", patch(name))
    named = recipe(name)
    if named.is_generating:
        run(tree, "make", "--old-file=.venv/dev.stamp", f"BIN={Path(sys.executable).parent}", "fix")
    shown = run(tree, sys.executable, "-m", "pytest", "--verbose", *named.tests)
    own = changed_by(name) & named.test_files
    assert own and all(f"{test} " in shown for test in own), shown
