"""POST /tools/*: cursors, and the order of what they page through."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.core.errors import Conflict
from apps.index.models import Root
from apps.lookup.symbols import callers, imports, references
from apps.tools.list_repositories import LIST_REPOSITORIES
from tests.lookup.symbols.conftest import Post, post
from tests.support.ingested import ingested_once, run_ingest

__all__ = ["post"]

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.door,
    pytest.mark.usefixtures("repositories", "patience"),
]

# More files than are parsed at once.
USES = {
    f"dock/use_{n:02}.py": f"from port.ships import moor\n\n\ndef use():\n    return moor({n})\n"
    for n in range(40)
}
PORT = {"port/ships.py": "import os\n\n\ndef moor(ship):\n    return os.getpid()\n", **USES}
ISLE = {"isle/ships.py": "def moor(ship):\n    return ship\n\n\ndef anchor():\n    moor(1)\n"}
LISTS: dict[str, dict[str, Any]] = {
    "grep": {"pattern": "moor"},
    "list-files": {"depth": 9},
    "symbol-definitions": {"name": "moor"},
    "symbol-references": {"name": "moor"},
    "find-callers": {"name": "moor"},
    "find-imports": {"name": "port/ships.py"},
}


@pytest.fixture(scope="module")
def repositories(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("pages")))
    with ingested_once(django_db_blocker, base, {"port": PORT, "isle": ISLE}):
        yield base


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another process may keep the machine busy.
    for module in (callers, imports):
        monkeypatch.setattr(module, "PARSE_SECONDS", 60.0)


def first_page(post: Post, route: str, **more: Any) -> dict[str, Any]:
    status, answer = post(route, **LISTS[route], limit=1, **more)
    assert status == 200 and answer["truncated"], answer
    return answer


@pytest.mark.parametrize("route", LISTS)
def test_a_cursor_that_no_page_returned_is_refused(post: Post, route: str) -> None:
    right = first_page(post, route)["nextCursor"]
    wrong = ["1", "x", 7, ["1"], {"a": 1}, f"{right}0", right.upper() + "!", "1." + "0" * 16]
    for cursor in wrong:
        status, answer = post(route, **LISTS[route], cursor=cursor)
        assert (status, answer["error"]) == (400, "CURSOR_INVALID"), cursor
        assert "nextCursor" in answer["message"]


@pytest.mark.parametrize("route", LISTS)
def test_a_cursor_of_another_call_is_refused(post: Post, route: str) -> None:
    cursor = first_page(post, route)["nextCursor"]
    for other in LISTS:
        arguments = LISTS[other] if other != route else {**LISTS[route], "path": "dock/"}
        status, answer = post(other, **arguments, cursor=cursor)
        assert (status, answer["error"]) == (400, "CURSOR_INVALID"), other


@pytest.mark.parametrize("route", LISTS)
def test_a_cursor_continues_with_another_limit(post: Post, route: str) -> None:
    _, whole = post(route, **LISTS[route], limit=100)
    cursor = first_page(post, route)["nextCursor"]
    _, rest = post(route, **LISTS[route], limit=100, cursor=cursor)
    assert rest["results"] == whole["results"][1:]


@pytest.mark.parametrize("route", LISTS)
def test_a_cursor_of_an_index_that_has_changed_has_expired(post: Post, route: str) -> None:
    cursor = first_page(post, route)["nextCursor"]
    place, count, digests = cursor.partition(".")
    moved = f"{int(place.split('-')[0]) + 1}{place[len(place.split('-')[0]) :]}{count}{digests}"
    assert post(route, **LISTS[route], cursor=moved)[1]["error"] == "CURSOR_EXPIRED"
    Root.objects.filter(name="port").update(generation=2)
    status, answer = post(route, **LISTS[route], cursor=cursor)
    assert (status, answer["error"]) == (409, "CURSOR_EXPIRED")


@pytest.mark.parametrize("route", LISTS)
def test_an_ingest_without_changes_leaves_the_order_and_the_cursors(
    post: Post, repositories: Path, route: str
) -> None:
    _, before = post(route, **LISTS[route], limit=100)
    cursor = first_page(post, route)["nextCursor"]
    for name in ("isle", "port"):
        assert run_ingest(repositories / name).state in ("completed", "skipped")
        _, after = post(route, **LISTS[route], limit=100)
        assert after["results"] == before["results"]
    _, rest = post(route, **LISTS[route], limit=100, cursor=cursor)
    assert rest["results"] == before["results"][1:]


def test_references_in_more_files_than_one_page_parses_follow(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, whole = post("symbol-references", name="moor", limit=100)
    assert len(whole["results"]) == 83 and not whole["truncated"]
    monkeypatch.setattr(references, "MAX_FILES", references.FILES_AT_ONCE)
    rows: list[dict[str, Any]] = []
    cursor, pages = None, 0
    while cursor != "":
        _, answer = post("symbol-references", name="moor", limit=100, cursor=cursor)
        rows, cursor, pages = rows + answer["results"], answer.get("nextCursor", ""), pages + 1
        assert answer["truncated"] == bool(cursor)
    assert (rows, pages) == (whole["results"], 3)


def test_a_page_of_the_repositories_says_when_their_order_has_changed(
    repositories: Path, configure: Any
) -> None:
    configure(tool_max_chars=10)
    first = LIST_REPOSITORIES.run({})
    assert [each["id"] for each in first["repos"]] == ["isle"]
    last = LIST_REPOSITORIES.run({"cursor": first["nextCursor"]})
    assert [each["id"] for each in last["repos"]] == ["port"] and "nextCursor" not in last
    assert run_ingest(repositories / "port").state in ("completed", "skipped")
    with pytest.raises(Conflict) as expired:
        LIST_REPOSITORIES.run({"cursor": first["nextCursor"]})
    assert expired.value.code == "CURSOR_EXPIRED"
