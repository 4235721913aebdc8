"""`degraded` in symbol results while the words of a root are incomplete."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from apps.core.config import config
from apps.index.lexical import get_lexical, reset_lexical
from apps.index.models import Root
from apps.tools.tools import TOOLS
from tests.lookup.symbols.conftest import Post

pytestmark = [pytest.mark.django_db, pytest.mark.door]

REBUILT = "the words of harbour are being rebuilt"
ARGUMENTS = {
    "symbol-definitions": {"name": "Ship"},
    "symbol-references": {"name": "Ship"},
    "file-outline": {"repository": "harbour", "path": "src/harbour/ships.py"},
}
FIND = {
    "FindDefinitions": ARGUMENTS["symbol-definitions"],
    "FindReferences": ARGUMENTS["symbol-references"],
    "FileOutline": ARGUMENTS["file-outline"],
}


@pytest.fixture(params=["gone", "broken", "incomplete"])
def damaged(request: pytest.FixtureRequest, harbour: Path) -> Iterator[None]:
    """The words of `harbour` are not whole; those of `quay` are."""
    root = Root.objects.get(name="harbour")
    get_lexical().count(root.id)
    reset_lexical()
    path = config().data_dir / "lexical" / f"{root.id.hex}.sqlite3"
    was = path.read_bytes()
    match request.param:
        case "gone":
            path.unlink()
        case "broken":
            path.write_bytes(b"no database at all, but long enough to be read as one" * 100)
        case "incomplete":
            Root.objects.filter(id=root.id).update(embedded=root.embedded + 1)
    yield
    reset_lexical()
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    path.write_bytes(was)


@pytest.mark.fault("The word index is lost")
@pytest.mark.parametrize("route", ARGUMENTS)
def test_a_result_is_marked_as_degraded(damaged: None, post: Post, route: str) -> None:
    status, answer = post(route, **ARGUMENTS[route])
    assert (status, answer.get("degraded")) == (200, REBUILT)


def test_the_other_roots_answer(damaged: None, post: Post) -> None:
    for route in ("symbol-definitions", "symbol-references"):
        _, answer = post(route, name="Ship")
        assert "quay" in [each["repo"] for each in answer["results"]]
        _, answer = post(route, name="Ship", repository="quay")
        assert "degraded" not in answer


@pytest.mark.fault("The word index is lost")
@pytest.mark.parametrize("name", FIND)
def test_a_tool_result_is_marked_as_degraded(damaged: None, name: str) -> None:
    tool = next(each for each in TOOLS if each.name == name)
    assert tool.run(FIND[name])["degraded"] == REBUILT


@pytest.mark.fault("The word index is lost")
def test_an_empty_page_shows_that_the_result_is_degraded(damaged: None, client: Client) -> None:
    for name in ("Ship", "Nothing_has_this_name"):
        page = client.get("/search", {"q": name, "mode": "symbols"}).content.decode()
        assert f"The result is not complete: {REBUILT}" in page


def test_a_complete_result_is_not_marked(harbour: Path, post: Post) -> None:
    for route, arguments in ARGUMENTS.items():
        assert "degraded" not in post(route, **arguments)[1]
