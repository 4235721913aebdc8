"""The documents say what is true: every setting, every command, every link."""

import re
from dataclasses import fields

import pytest

from apps.conversations.answers import diagrams
from apps.core.config import Config
from tests.house.sources import HOME, name_of, tracked

pytestmark = pytest.mark.door

ENV_NAMES = [field.metadata["env"] for field in fields(Config)]
MARKDOWN = [file for file in tracked() if file.suffix == ".md"]


def test_every_knob_is_documented_with_its_meaning() -> None:
    table = (HOME / "docs/configuration.md").read_text()
    for field in fields(Config):
        row = next((r for r in table.splitlines() if f"`{field.metadata['env']}`" in r), "")
        assert field.metadata["doc"].rstrip(".") in row, field.metadata["env"]


def test_every_documented_variable_is_a_knob() -> None:
    table = (HOME / "docs/configuration.md").read_text()
    rows = re.findall(r"^\| `([A-Z_]+)`", table, re.M)
    assert sorted(rows) == sorted(ENV_NAMES)


def test_the_example_environment_names_every_knob_and_sets_none() -> None:
    lines = (HOME / ".env.example").read_text().splitlines()
    assert sorted(re.findall(r"^# ?([A-Z_]+)=", "\n".join(lines), re.M)) == sorted(ENV_NAMES)
    assert [line for line in lines if line and not line.startswith("#")] == []


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


def test_every_diagram_can_be_drawn() -> None:
    sources = [
        (name_of(file), source)
        for file in MARKDOWN
        for source in re.findall(r"^```mermaid\n(.*?)^```", file.read_text(), re.M | re.S)
    ]
    assert sources
    for name, source in sources:
        assert isinstance(diagrams.draw(source), diagrams.Diagram), name
