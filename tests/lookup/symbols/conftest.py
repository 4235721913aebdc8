"""Two small repositories in many languages, ingested once for all tests of a module."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.lookup.symbols import callers, imports
from tests.support.ingested import ingested_once

__all__ = ["callers_of", "harbour", "importers_of", "patience", "post"]

HARBOUR: dict[str, str | bytes] = {
    "src/harbour/client.py": (
        '"""Talks to the harbour. `moor` is its verb."""\n\n'
        "from harbour.ships import moor\n\n"
        "TIMEOUT = 5\n\n\n"
        "class Client:\n"
        '    """Keeps ships: moor them here."""\n\n'
        "    def moor(self, ship: str) -> bool:\n"
        "        # moor it\n"
        "        def helper():\n"
        "            return ship\n"
        "        return moor(ship, TIMEOUT)\n\n"
        "    def _secret(self):\n"
        "        return self.moor('moor')\n"
    ),
    "src/harbour/ships.py": (
        "def moor(ship, seconds):\n    return bool(ship) and seconds\n\n\n"
        "def _helper():\n    return moor\n\n\n"
        "class Ship:\n    length = 3\n"
    ),
    "tests/test_ships.py": (
        "from harbour.ships import moor\n\n\n"
        "def moor_once():\n    return moor('a', 1)\n\n\n"
        "class Ship:\n    pass\n"
    ),
    "docs/guide.md": "# Moor\n\n## Ship\n\nCall `moor` of a Ship.\n",
    "web/ship.ts": (
        "export interface Ship { name: string }\n\n"
        "export function ship(one: Ship): Ship {\n  return one\n}\n"
    ),
    "db/ships.sql": "CREATE TABLE berth (id int);\n-- berth of a ship\nSELECT id FROM berth;\n",
    "lib/crane.rs": (
        "pub struct Crane { tons: u32 }\n\nimpl Crane {\n"
        "    pub fn lift(&self) -> u32 {\n        self.tons\n    }\n}\n"
    ),
    "notes.txt": "Nothing of note.\n",
}
QUAY: dict[str, str | bytes] = {
    "main.go": (
        "package main\n\n// Ship is moored.\ntype Ship struct{}\n\n"
        "func (s *Ship) Moor() error {\n\treturn nil\n}\n\n"
        "func main() {\n\t(&Ship{}).Moor()\n}\n"
    ),
    "valid.rb": "def valid?\n  true\nend\n\nvalid? && valid\n",
}

Post = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def harbour(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The folder of `harbour`; `quay` lies beside it. A test must leave the files as they are."""
    base = Path(os.path.realpath(tmp_path_factory.mktemp("symbols")))
    with ingested_once(django_db_blocker, base, {"quay": QUAY, "harbour": HARBOUR}):
        yield base / "harbour"


@pytest.fixture
def post(client: Client) -> Post:
    """post("symbol-definitions", name="moor") is the status and the JSON of the answer."""

    def posted(tool: str, **body: Any) -> tuple[int, dict[str, Any]]:
        response = client.post(f"/tools/{tool}", body, content_type="application/json")
        return response.status_code, response.json()

    return posted


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another process may keep the machine busy.
    for module in (callers, imports):
        monkeypatch.setattr(module, "PARSE_SECONDS", 60.0)


def callers_of(
    post: Post, symbol: str, kinds: frozenset[str] = frozenset({"proven"}), **more: Any
) -> list[str]:
    """File, line and symbol of the calls, which are all of these kinds."""
    status, answer = post("find-callers", name=symbol, **more)
    assert status == 200, answer
    assert {each["kind"] for each in answer["results"]} <= kinds
    return [
        f"{each['relPath'].rpartition('/')[2]}:{each['startLine']} {each.get('symbol', '')}".strip()
        for each in answer["results"]
    ]


def importers_of(post: Post, name: str, **more: Any) -> list[str]:
    """Path and line of the imports of a file."""
    status, answer = post("find-imports", name=name, direction="importers", **more)
    assert status == 200, answer
    return [f"{each['relPath']}:{each['startLine']}" for each in answer["results"]]
