"""Pages over /mcp: who follows `nextCursor` sees every row once, whatever an answer may hold."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from apps.lookup.symbols import callers, imports
from tests.support.compact_rows import rows_of
from tests.support.ingested import ingested_once

pytestmark = pytest.mark.door

LONG = "".join(f"    total = total + step_{n}(ship) * {n}\n" for n in range(60))
# Several files with one name each, a row that is longer than most caps, tests, a second repository.
HARBOUR: dict[str, str] = {
    "port/__init__.py": "from .ships import moor, launch\n",
    "port/ships.py": (
        "import os\nimport re\nfrom typing import Any\n\n\n"
        f"def moor(ship):\n{LONG}    return ship\n\n\n"
        "def launch(ship):\n    return moor(ship)\n"
    ),
    **{
        f"port/berth_{n:02}.py": (
            f"import json\nfrom port.ships import moor\n\n\ndef berth_{n}(ship):\n"
            f"    '''Berth {n}: moor the ship.'''\n    moor(ship)\n    return moor(ship)\n"
        )
        for n in range(9)
    },
    "tests/test_ships.py": "from port.ships import moor\n\n\ndef test():\n    assert moor(1)\n",
    "wide.txt": "moor " * 300 + "\n",
}
QUAY = {f"lib/moor_{n}.ts": f"export function moor() {{ return {n} }}\nmoor()\n" for n in range(5)}
# What to list: a tool, its arguments.
LISTS: dict[str, tuple[str, dict[str, Any]]] = {
    "lines": ("Grep", {"pattern": "moor"}),
    "context": ("Grep", {"pattern": "moor", "context": 20}),
    "files": ("Grep", {"pattern": "moor", "mode": "files"}),
    "counts": ("Grep", {"pattern": "moor", "mode": "count"}),
    "tree": ("ListFiles", {"depth": 9}),
    "definitions": ("FindDefinitions", {"name": "moor"}),
    "references": ("FindReferences", {"name": "moor"}),
    "callers": ("FindCallers", {"name": "moor", "depth": 2}),
    "importers": ("FindImports", {"name": "port/ships.py"}),
    "repositories": ("ListIngestedRepositories", {}),
}
EVERYTHING = {"lines": 500, "context": 500, "files": 500, "counts": 500, "tree": 1_000}
# Characters that one row takes at least with the rest of an answer, paths of this machine included.
LEAST = 700


@pytest.fixture(scope="module")
def repositories(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("p")))
    with ingested_once(django_db_blocker, base, {"harbour": HARBOUR, "quay": QUAY}):
        yield base


@pytest.fixture
def db(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The tests read only, so they need no transaction, in which no query is cached."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture(autouse=True)
def patience(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    # Another process may keep the machine busy.
    for module in (callers, imports):
        monkeypatch.setattr(module, "PARSE_SECONDS", 60.0)


Call = Callable[..., dict[str, Any]]


@pytest.fixture
def call(repositories: Path, client: Client) -> Call:
    """call("Grep", pattern="x") is the result of tools/call."""

    def called(tool: str, **arguments: Any) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"mcp-protocol-version": "2025-11-25"}
        response = client.post("/mcp", body, content_type="application/json", headers=headers)
        result: dict[str, Any] = response.json()["result"]
        return result

    return called


def place(row: dict[str, Any]) -> str:
    names = ("repo", "relPath", "startLine", "count", "depth", "id")
    return " ".join(str(row[name]) for name in names if row.get(name) is not None)


def walk(call: Call, tool: str, arguments: dict[str, Any], cap: int) -> list[str]:
    """The places of all rows, page by page. Each page has rows and a way on."""
    places: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        result = call(tool, **arguments, **cursor)
        answer = result["structuredContent"]
        found = [place(row) for row in rows_of(answer)]
        assert found, answer
        assert len(json.dumps(answer, ensure_ascii=False)) <= max(cap, LEAST), answer
        places += found
        assert bool(answer.get("truncated")) == ("nextCursor" in answer) or len(found) == 1, answer
        if "nextCursor" not in answer:
            return places
        assert len(places) < 1_000
        cursor = {"cursor": answer["nextCursor"]}


@pytest.mark.parametrize("form", ["full", "compact"])
@pytest.mark.parametrize("name", LISTS)
@given(cap=st.integers(1, 6_000), limit=st.integers(1, 100))
@example(cap=1, limit=100)
@example(cap=40_000, limit=3)
@settings(
    max_examples=1, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_pages_of_any_size_are_the_whole_list(
    call: Call, configure: Callable[..., None], name: str, form: str, cap: int, limit: int
) -> None:
    tool, arguments = LISTS[name]
    arguments = arguments | {"format": form}
    configure(tool_max_chars=1_000_000)
    most = {} if name == "repositories" else {"limit": EVERYTHING.get(name, 100)}
    whole = [place(row) for row in rows_of(call(tool, **arguments, **most)["structuredContent"])]
    assert len(set(whole)) == len(whole) > 1
    configure(tool_max_chars=cap)
    paged = walk(call, tool, arguments | ({"limit": limit} if most else {}), cap)
    # The compact form puts the lines of a file together.
    assert paged == whole if form == "full" else sorted(paged) == sorted(whole)
