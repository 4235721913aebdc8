"""GDScript: definitions and callers."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.code.callgraph.edges import edges
from tests.lookup.symbols.conftest import Post
from tests.support.ingested import ingested_once

pytestmark = [pytest.mark.django_db, pytest.mark.door]

GAME: dict[str, str | bytes] = {
    "shop.gd": (
        "class_name Shop\n\n"
        "func price(of, n := 1) -> int:\n"
        "\tvar made = Box.new()\n"
        "\tmade.open(n)\n"
        "\treturn self.helper(of).size()\n\n"
        "static func helper(x):\n\treturn x\n\n"
        "class Box:\n"
        "\tfunc open(n):\n\t\tself.close(func(a): return helper(a))\n"
        "\tfunc close(then):\n\t\tthen.call()\n"
    ),
    "main.gd": "func run(shop):\n\tshop.price(1)\n\tShop.helper(2)\n",
}


def test_calls_mean_members_of_the_file_and_of_objects() -> None:
    assert edges({name: str(text) for name, text in GAME.items()}) == [
        *["run -> ? shop.gd:Shop.price", "run -> shop.gd:Shop.helper"],
        *["Shop.price -> Shop.Box", "Shop.price -> Shop.Box.open", "Shop.price -> Shop.helper"],
        *["Shop.Box.open -> Shop.Box.close", "Shop.Box.open -> Shop.helper"],
    ]


@pytest.fixture(scope="module")
def game(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("game")))
    with ingested_once(django_db_blocker, base, {"game": GAME}):
        yield


def test_definitions_and_callers_are_found(game: None, post: Post) -> None:
    status, answer = post("symbol-definitions", name="Box.open")
    assert (status, [each["startLine"] for each in answer["results"]]) == (200, [12])
    status, answer = post("find-callers", name="helper")
    callers = {each["symbol"]: each["kind"] for each in answer["results"]}
    assert status == 200
    assert callers == dict.fromkeys(["run", "Shop.price", "Shop.Box.open"], "proven")
