"""`degraded` in symbol results while a part of a root cannot be read."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from apps.index.mapped import lists, part
from apps.index.mapped.opened import opened_roots
from apps.index.models import Root
from apps.tools.tools import TOOLS
from tests.lookup.symbols.conftest import Post

pytestmark = [pytest.mark.django_db, pytest.mark.door]

LOST = "a part of the index is lost: harbour"
ARGUMENTS = {
    "symbol-definitions": {"name": "Ship"},
    "symbol-references": {"name": "Ship"},
    "file-outline": {"repository": "harbour", "path": "src/harbour/ships.py"},
    "overview": {"repository": "harbour"},
}
FIND = {
    "FindDefinitions": ARGUMENTS["symbol-definitions"],
    "FindReferences": ARGUMENTS["symbol-references"],
    "FileOutline": ARGUMENTS["file-outline"],
    "Overview": ARGUMENTS["overview"],
}


@pytest.fixture(params=["gone", "changed"])
def damaged(request: pytest.FixtureRequest, harbour: Path) -> Iterator[None]:
    """The part of `harbour` cannot be read; that of `quay` can."""
    root = Root.objects.get(name="harbour")
    (entry,) = root.parts
    path = part.path_of(lists.folder(), entry["name"])
    was = path.read_bytes()
    if request.param == "gone":
        path.unlink()
    else:
        path.write_bytes(was[:-100] + b"!" * 100)
    opened_roots.keep_only([])
    yield
    path.write_bytes(was)
    opened_roots.keep_only([])


@pytest.mark.fault("A part of the index is lost")
@pytest.mark.parametrize("route", ARGUMENTS)
def test_a_result_is_marked_as_degraded(damaged: None, post: Post, route: str) -> None:
    status, answer = post(route, **ARGUMENTS[route])
    assert (status, answer.get("degraded")) == (200, LOST)


def test_the_other_roots_answer(damaged: None, post: Post) -> None:
    for route in ("symbol-definitions", "symbol-references"):
        _, answer = post(route, name="Ship")
        assert "quay" in [each["repo"] for each in answer["results"]]
        _, answer = post(route, name="Ship", repository="quay")
        assert "degraded" not in answer


@pytest.mark.fault("A part of the index is lost")
@pytest.mark.parametrize("name", FIND)
def test_a_tool_result_is_marked_as_degraded(damaged: None, name: str) -> None:
    tool = next(each for each in TOOLS if each.name == name)
    assert tool.run(FIND[name])["degraded"] == LOST


@pytest.mark.fault("A part of the index is lost")
def test_an_empty_page_shows_that_the_result_is_degraded(damaged: None, client: Client) -> None:
    for name in ("Ship", "Nothing_has_this_name"):
        page = client.get("/search", {"q": name, "mode": "symbols"}).content.decode()
        assert f"The result is not complete: {LOST}" in page


def test_a_complete_result_is_not_marked(harbour: Path, post: Post) -> None:
    for route, arguments in ARGUMENTS.items():
        assert "degraded" not in post(route, **arguments)[1]
