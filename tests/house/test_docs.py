"""The documents say what is true: every setting, every command, every link."""

import json
import re
import subprocess
import sys
from dataclasses import fields

import pytest

from apps.core.config import Config
from scripts import settings
from tests.house.sources import HOME, name_of, tracked

pytestmark = pytest.mark.door

# Characters of a table's cell, or of an item between its middle dots: what is longer is a paragraph
# beside the table.
MAX_CELL = 300
# Paths in backquotes: from the top of the repository, or the end of a module's path.
PATH = re.compile(
    r"`((?:apps|benchmarks|codeinfo|codeinfo_cli|docs|release|requirements|scripts|static|templates"
    r"|tests|training)/[\w./-]*|[\w/]+\.py)(?:::\w+)?`"
)
# Paths in examples.
EXAMPLES = {"a.py", "typing.py", "parser/__init__.py", "codeinfo/index"}  # a key of `_meta`
MARKDOWN = [file for file in tracked() if file.suffix == ".md"]


def test_the_documents_list_every_setting_as_the_table_has_it() -> None:
    """If this fails: make fix"""
    assert settings.PAGE.read_text() == settings.page()
    assert settings.EXAMPLE.read_text() == settings.example()


def test_the_example_environment_sets_nothing() -> None:
    lines = settings.example().splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == []
    assert {f"# {row.metadata['env']}" for row in fields(Config)} <= {
        line.partition("=")[0] for line in lines
    }


def test_every_make_target_that_a_document_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (HOME / "Makefile").read_text(), re.M))
    assert len(targets - {"serve"}) <= 20
    for file in MARKDOWN:
        for target in re.findall(r"`make ([a-z-]+)", file.read_text()):
            assert target in targets, f"{name_of(file)}: make {target}"


def test_links_between_documents_lead_somewhere() -> None:
    for file in MARKDOWN:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", file.read_text()):
            assert (file.parent / target).exists(), f"{name_of(file)} → {target}"


def test_no_cell_of_a_table_is_a_paragraph() -> None:
    cells = (
        (f"{name_of(file)}:{number}", cell)
        for file in MARKDOWN
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if line.startswith("|")
        for cell in re.split(r"(?<!\\)\|| · ", line)
    )
    assert [place for place, cell in cells if len(cell) > MAX_CELL] == []


def test_every_path_that_a_document_names_exists() -> None:
    """The results of benchmarks name paths of their day."""
    names = "".join(f"/{name_of(file)}\n" for file in tracked())
    lost = {
        f"{name_of(file)}: {path}"
        for file in MARKDOWN
        if file.parent.name != "results"
        for path in set(PATH.findall(file.read_text())) - EXAMPLES
        if not re.search(rf"/{re.escape(path.rstrip('/'))}(/|\.py$|$)", names, re.M)
    }
    assert lost == set()


def test_every_benchmark_is_in_the_page_of_results() -> None:
    page = (HOME / "docs/benchmarks.md").read_text()
    scripts = [file for file in tracked() if file.parent == HOME / "benchmarks"]
    commands = {file.stem for file in scripts if "__main__" in file.read_text(errors="replace")}
    named = set(re.findall(r"-m\s+benchmarks\.(\w+)", page))
    assert named == commands | {"answers", "retrieval"}
    results = {file.name for file in tracked() if file.parent == HOME / "benchmarks/results"}
    linked = set(re.findall(r"results/(\w+\.md)", page))
    assert results - linked == set()


def test_every_picture_that_is_tracked_is_in_a_document() -> None:
    shown = {
        (file.parent / name).resolve()
        for file in MARKDOWN
        for name in re.findall(r"[\w./-]*screenshots/[\w-]+\.png", file.read_text())
    }
    assert {file for file in tracked() if file.parent == HOME / "docs/screenshots"} == shown


# The package registries' hosts, spelled so that this file does not name them.
HOSTS = ("pypi~org", "pythonhosted~org", "npmjs~org", "npmjs~com", "deb~debian~org")
REGISTRY_HOSTS = re.compile("|".join(host.replace("~", r"\.") for host in HOSTS))


def test_no_file_names_a_registry_host() -> None:
    found = []
    for file in tracked():
        if file.suffix in (".npz", ".png", ".ico"):
            continue
        if REGISTRY_HOSTS.search(file.read_text(errors="replace")):
            found.append(name_of(file))
    assert found == []


# As apps/conversations/answers/diagrams.py draws, but without its limits of time, and all in one.
DRAW = """
import json, os, sys
import mermaidx
for source in json.load(sys.stdin):
    mermaidx.render(source).svg()
os._exit(0)
"""


def test_every_diagram_can_be_drawn() -> None:
    sources = [
        source
        for file in MARKDOWN
        for source in re.findall(r"^```mermaid\n(.*?)^```", file.read_text(), re.M | re.S)
    ]
    assert sources
    command = [sys.executable, "-c", DRAW]
    done = subprocess.run(
        command, input=json.dumps(sources), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
