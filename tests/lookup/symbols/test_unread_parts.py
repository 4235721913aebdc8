"""A file that its grammar cannot read for the most part says so wherever its definitions are."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.index.models import Root
from tests.ingest.requests import skipped
from tests.lookup.symbols.conftest import Post
from tests.support.index import index
from tests.support.ingested import ingest, write_files
from tests.support.verification import verify

__all__ = ["index"]
pytestmark = [pytest.mark.django_db, pytest.mark.door, pytest.mark.usefixtures("index")]

WRECK = "def moor(ship):\n    return ship\n\n" + "%% ?? ship :: ~~> {{ hull\n" * 3
NOTE = "The parser could not read "


@pytest.fixture
def answers(folder: Path, post: Post) -> dict[str, Any]:
    """The outlines and definitions of a wreck and of a whole file, by file."""
    ingest(write_files(folder / "yard", {"wreck.py": WRECK, "whole.py": "def sail():\n    pass\n"}))
    return {
        name: (
            post("file-outline", repository="yard", path=name)[1],
            post("symbol-definitions", name=symbol)[1]["results"][0],
        )
        for name, symbol in {"wreck.py": "moor", "whole.py": "sail"}.items()
    }


def test_outline_and_definition_tell_how_much_was_not_read(answers: dict[str, Any]) -> None:
    outline, definition = answers["wreck.py"]
    assert outline["note"].startswith(NOTE) and outline["note"].endswith(" % of this file")
    assert definition["note"] == outline["note"]
    assert [symbol["name"] for symbol in outline["symbols"]] == ["moor"]
    assert all("note" not in answer for answer in answers["whole.py"])


def test_the_page_and_the_list_of_problems_tell_it(client: Client, answers: dict[str, Any]) -> None:
    note = answers["wreck.py"][0]["note"]
    assert skipped(client) == {"wreck.py": note}
    page = client.get("/code/yard/wreck.py").content.decode()
    assert note in page
    assert NOTE not in client.get("/code/yard/whole.py").content.decode()


def test_it_is_no_damage(answers: dict[str, Any]) -> None:
    assert verify(source=True) == []
    assert not Root.objects.get().damage
