"""A conversation that is limited to some files: no tool tells of another one."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.agents.tools import toolset
from apps.core.errors import CodeinfoError
from apps.index.types import Area
from apps.retrieval.query import repositories_of
from apps.retrieval.tool import Tool
from tests.support.ingested import ingested_once

pytestmark = [pytest.mark.django_db, pytest.mark.door]

ANCHOR = '''def lower_anchor(chain):
    """Lower the anchor of the ship by its chain."""
    return chain.run({0})
'''
SAIL = """from src.anchor import lower_anchor


def {0}_sail(chain):
    return lower_anchor(chain)
"""
HARBOUR = {
    "src/anchor.py": ANCHOR.format("1"),
    "src/ship.py": SAIL.format("open"),
    "src/test_anchor.py": SAIL.format("test"),
    "vault/vault_anchor.py": ANCHOR.format("'vault'"),
    "vault/vault_ship.py": SAIL.format("vault"),
    "vault/test_vault.py": SAIL.format("test_vault"),
    "vault.md": "# Vault\n\nHow to lower the anchor of the ship: the vault knows.\n",
}
PORT = {"docks/port.py": ANCHOR.format("'port'"), "vault/vault_port.py": ANCHOR.format("'vault'")}
FORT = {"fort/vault.py": ANCHOR.format("'vault'"), "fort/use.py": SAIL.format("vault")}
# A folder, a glob and a file: together, not each in each repository.
AREAS = (Area("harbour", "src/"), Area("port", "docks/*.py"))
NAME = {"name": "lower_anchor"}
CALLS: dict[str, list[dict[str, Any]]] = {
    "ListIngestedRepositories": [{}],
    "VectorSearch": [
        {"query": "lower the anchor of the ship", "limit": 20},
        {"query": "lower_anchor", "repository": "harbour"},
        {"query": "zzz unknown words"},
    ],
    "FindDefinitions": [NAME, {"name": "Lower_Anchor"}, {"name": "x.lower_anchor"}],
    "FindReferences": [NAME, NAME | {"repository": "port"}],
    "FindCallers": [NAME, NAME | {"depth": 3}, {"name": "src/anchor.py:1"}],
    "FindImports": [{"name": "src/anchor.py"}, {"name": "src.anchor"}],
    "FileOutline": [{"path": "src/anchor.py", "repository": "harbour"}],
    "Grep": [
        {"pattern": "lower_anchor"},
        {"pattern": "lower_anchor", "mode": "files"},
        {"pattern": "def .*", "mode": "count"},
        {"pattern": "nothing like this"},
    ],
    "ReadFile": [{"path": "src/anchor.py", "repository": "harbour"}],
    "ListFiles": [
        {},
        {"depth": 3},
        {"repository": "harbour", "glob": "**/*.py"},
        {"repository": "harbour", "skipped": True},
    ],
    "Context": [{"question": "how is the anchor lowered?", "max_tokens": 2_000}],
    "RelatedCode": [
        {"repository": "harbour", "path": "src/anchor.py", "start_line": 1, "end_line": 3}
    ],
}


@pytest.fixture(scope="module")
def ships(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any
) -> Iterator[None]:
    repositories = {"harbour": HARBOUR, "port": PORT, "fort": FORT}
    base = Path(os.path.realpath(tmp_path_factory.mktemp("ships")))
    with ingested_once(django_db_blocker, base, repositories):
        yield


def tools(*areas: Area) -> dict[str, Tool]:
    """The tools of a turn, as `conversations.runner` chooses them."""
    return {tool.name: tool for tool in toolset(repositories_of(areas), areas=areas)}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("is_compact", [False, True])
def test_no_answer_tells_of_a_file_outside(ships: None, name: str, is_compact: bool) -> None:
    tool = tools(*AREAS)[name]
    told = 0
    for arguments in CALLS[name]:
        try:
            answer = json.dumps(tool.run(arguments, is_compact=is_compact))
        except CodeinfoError as error:
            answer = json.dumps([error.message, error.details], default=str)
        assert "vault" not in answer.lower(), arguments
        assert "fort" not in answer, arguments
        told += "anchor" in answer or "port" in answer
    assert told, "files inside are found"


def test_every_tool_is_tried() -> None:
    assert set(CALLS) == set(tools(*AREAS))


@pytest.mark.parametrize("name", ["FileOutline", "ReadFile", "RelatedCode", "FindImports"])
def test_a_file_outside_is_refused_or_unknown(ships: None, name: str) -> None:
    tool = tools(*AREAS)[name]
    for repository, path in (("harbour", "vault/vault_anchor.py"), ("fort", "fort/vault.py")):
        arguments = {"repository": repository, "path": path, "name": path}
        arguments |= {"start_line": 1, "end_line": 3} if name == "RelatedCode" else {}
        try:
            answer = json.dumps(tool.run(arguments))
        except CodeinfoError as error:
            answer = error.message
        assert "lower" not in answer, arguments


def test_a_model_cannot_widen_the_areas(ships: None) -> None:
    grep = tools(*AREAS)["Grep"]
    for more in ({" areas": []}, {"areas": [["fort", ""]]}, {"repository": ["fort", "harbour"]}):
        try:
            answer = json.dumps(grep.run({"pattern": "lower_anchor", **more}))
        except CodeinfoError as error:
            answer = error.message
        assert "vault" not in answer


def test_without_areas_the_other_files_are_found(ships: None) -> None:
    assert "vault_ship" in json.dumps(tools()["Grep"].run({"pattern": "lower_anchor"}))
