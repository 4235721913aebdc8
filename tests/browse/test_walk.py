"""How many types of values a search of the page passes through (docs/architecture.md, walk 1)."""

import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

pytestmark = [pytest.mark.django_db, pytest.mark.door]
ROOMS = ("apps.browse", "apps.lookup", "apps.retrieval")
MAX_TYPES = 11


def value_types() -> Iterator[type]:
    """The dataclasses and named tuples of these rooms."""
    for name, module in list(sys.modules.items()):
        for each in vars(module).values() if name.startswith(ROOMS) else ():
            is_own = isinstance(each, type) and each.__module__ == name
            if is_own and (is_dataclass(each) or hasattr(each, "_fields")):
                yield each


def test_a_search_by_words_makes_values_of_few_types(
    client: Client, harbour: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {"q": "moor a ship at the quay"}
    client.get("/search", query)
    made: set[str] = set()

    def counting(kind: type, name: str) -> Any:
        make = getattr(kind, name)

        def counted(self: Any, *args: Any, **named: Any) -> Any:
            made.add(kind.__qualname__)
            return make(self, *args, **named)

        return counted

    for kind in value_types():
        name = "__init__" if is_dataclass(kind) else "__new__"
        monkeypatch.setattr(kind, name, counting(kind, name))
    page = client.get("/search", query).content.decode()
    assert 'aria-label="Match 1"' in page
    assert {"PageQuery", "SearchQuery", "Match", "SearchResult", "Hit"} <= made
    assert len(made) <= MAX_TYPES, sorted(made)
