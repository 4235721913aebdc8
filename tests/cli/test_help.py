"""The table of verbs: help, documentation, lazy imports, and each example as its users type it."""

import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeinfo_cli.verbs import GROUPS, VERBS
from tests.cli.command import CODEINFO, Command, command
from tests.house.sources import HOME

pytestmark = pytest.mark.door

DOCUMENT = (HOME / "docs/cli.md").read_text()
# Verbs whose examples are tried elsewhere: they do not end, or need a client or commits.
ELSEWHERE = {
    "serve": "tests/cli/test_server_verbs.py",
    "worker": "tests/site/test_worker.py",
    "mcp": "tests/cli/bridge.py",
    "install": "tests/cli/test_install.py",
    "uninstall": "tests/cli/test_install.py",
    "manage": "tests/cli/test_wheel.py",
    "history": "tests/cli/test_history_verb.py",
    "impact": "tests/cli/test_impact_verb.py",
    "check": "tests/cli/test_check_verb.py",
}
# Modules that no verb needs to search
HEAVY = ("django", "rich", "httpx", "re2", "platformdirs", "asyncio")


def test_help_has_each_verb_by_group() -> None:
    shown = help_of()
    for verb in VERBS:
        assert verb.group in GROUPS
        assert re.search(rf"^  {verb.name} +{re.escape(verb.summary)}$", shown, re.M), verb.name


def test_the_document_has_each_verb_with_its_examples() -> None:
    assert re.findall(r"^### (\S+)$", DOCUMENT, re.M) == [verb.name for verb in VERBS]
    sections = dict(re.findall(r"^### (\S+)\n\n(.*?)(?=^##|\Z)", DOCUMENT, re.M | re.S))
    for verb in VERBS:
        width = max(len(line) for line, _ in verb.examples)
        lines = "\n".join(f"    {line:{width}}  # {meaning}" for line, meaning in verb.examples)
        assert sections[verb.name].startswith(f"{verb.summary}\n\n{lines}\n"), verb.name


@pytest.mark.parametrize("name", [verb.name for verb in VERBS])
def test_the_help_of_a_verb_shows_its_examples(name: str) -> None:
    shown = help_of(name)
    verb = next(each for each in VERBS if each.name == name)
    assert shown.startswith(f"Usage: codeinfo {name} ")
    for line, meaning in verb.examples:
        assert re.search(rf"^    {re.escape(line)} +{re.escape(meaning)}$", shown, re.M)


def test_verbs_whose_examples_are_tried_elsewhere_have_tests_there() -> None:
    for name, file in ELSEWHERE.items():
        assert f'"{name}"' in (HOME / file).read_text(), name


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    with command(tmp_path_factory.mktemp("home")) as made:
        (made.home / "src" / "app").mkdir()
        (made.home / "src" / "app" / "app.py").write_text("def app() -> None: ...\n")
        made.run("ingest")
        made.run("ingest", str(made.home / "src" / "app"), "--name", "app")
        yield made


EXAMPLES = [line for verb in VERBS if verb.name not in ELSEWHERE for line, _ in verb.examples]


@pytest.mark.parametrize("line", EXAMPLES)
def test_each_example_succeeds(user: Command, line: str) -> None:
    folder = user.home / "folders"
    folder.mkdir(exist_ok=True)
    at = line.replace("/backups/", f"{folder}/").replace("/srv/", f"{folder}/")
    if line.startswith("codeinfo restore"):
        user.run("backup", f"{folder}/codeinfo.tar.gz", "--force")
    done = user.of(["bash", "-c", at])
    assert done.returncode == 0, (at, done.stdout, done.stderr)
    assert done.stdout.strip(), at


@pytest.mark.parametrize("arguments", [("--help",), ("search", "--help"), ("grep", "--help")])
def test_help_imports_no_heavy_library(arguments: tuple[str, ...]) -> None:
    assert imported(*arguments) == set()


def test_a_search_imports_no_heavy_library(user: Command) -> None:
    assert imported("search", "-a", "retry", "--json", **user.environment) == set()
    assert imported("grep", "-a", "retry", **user.environment) == set()


def test_a_verb_takes_a_fraction_of_the_start_of_django() -> None:
    verb, django = [CODEINFO, "--help"], [sys.executable, "-c", "import django; django.setup()"]
    assert processor_time(verb) < processor_time(django) / 2


def processor_time(line: list[str | Path]) -> float:
    """Seconds of processor time of a command, the least of three."""
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "codeinfo.settings"}
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(line, cwd=HOME, env=environment, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def imported(*arguments: str, **environ: str) -> set[str]:
    script = (
        "import sys, atexit; from codeinfo_cli.main import main;"
        f"atexit.register(lambda: print('IMPORTED', *[n for n in {HEAVY!r} if n in sys.modules]));"
        f"main({list(arguments)!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=HOME,
        env=environ or dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("IMPORTED")[2].split())


def help_of(*arguments: str) -> str:
    done = subprocess.run(
        [CODEINFO, *arguments, "--help"],
        env=os.environ | {"COLUMNS": "200", "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_wrong_verb_names_the_nearest(tmp_path: Path) -> None:
    for verb, meant in (("serch", "search"), ("cat", "read")):
        done = subprocess.run([CODEINFO, verb], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        said = f"codeinfo: There is no verb {verb!r}. Did you mean {meant!r}?"
        assert done.stderr.startswith(said)
    done = subprocess.run(
        [CODEINFO, "search", "--json"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, "")
    assert '"code": "USAGE"' in done.stdout
