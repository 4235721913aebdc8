"""The example questions about a repository: made from its definitions, true of its calls."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.index.models import Root
from apps.lookup import questions
from apps.lookup.questions import questions_about
from apps.lookup.symbols import CallersQuery, find_callers, project
from tests.support.ingested import ingested_once

pytestmark = [pytest.mark.django_db, pytest.mark.door]

SHOP: dict[str, str | bytes] = {
    "shop/app.py": (
        "from shop.orders import price, save_order\n\n\n"
        "class Shop:\n"
        "    def serve(self, request):\n        return self.full_dispatch(request)\n\n"
        "    def full_dispatch(self, request):\n"
        "        self.check(request)\n        return self.dispatch_order(request)\n\n"
        "    def dispatch_order(self, request):\n"
        "        price(request)\n        return save_order(request)\n\n"
        "    def check(self, request):\n        return _private(request)\n\n\n"
        "def _private(request):\n    return price(request)\n"
    ),
    "shop/orders.py": (
        "def price(order):\n    return 1\n\n\ndef save_order(order):\n    return price(order)\n"
    ),
    "tests/test_app.py": "from shop.app import Shop\n\n\ndef test_it():\n    Shop().serve(1)\n",
}
CLOCK: dict[str, str | bytes] = {
    "lib/clock.rb": "class Clock\n  def strike(hour)\n    hour\n  end\nend\n",
}
# What opens first for a question about `Fleet` is a method far below the line that defines it.
_CONSTANTS = "".join(
    f"    LAMP_{n} = ({n}, 'a lamp that nobody asks about, number {n}')\n" for n in range(90)
)
FLEET: dict[str, str | bytes] = {
    "fleet.py": (
        f"class Fleet:\n{_CONSTANTS}\n"
        "    def responsible_for(self, fleet):\n"
        '        """What a fleet is responsible for: the fleet answers for its ships."""\n'
        "        fleet_responsible = fleet.responsible_for_fleet\n"
        "        return fleet_responsible\n\n"
        "    def responsible(self, fleet):\n"
        '        """What is the fleet responsible for?"""\n'
        "        return self.responsible_for(fleet)\n"
    ),
}
NOTES: dict[str, str | bytes] = {"readme.md": "# Notes\n\nNothing but text.\n"}


@pytest.fixture(scope="module", autouse=True)
def ingested(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("questions")))
    repositories = {"shop": SHOP, "clock": CLOCK, "notes": NOTES, "fleet": FLEET}
    with ingested_once(django_db_blocker, base, repositories):
        yield


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another process may keep the machine busy.
    monkeypatch.setattr(questions, "SECONDS", 60.0)


def about(name: str) -> tuple[str, ...]:
    made: Any = questions_about
    found: tuple[str, ...] = made.__wrapped__(Root.objects.get(name=name))
    assert len(found) == len(set(found)) == 4
    return found


def callers_of(name: str) -> set[str]:
    query = CallersQuery.parse({"name": name, "repository": "shop"})
    return {each.symbol for each in find_callers(query).results if each.kind == "proven"}


def test_a_way_between_two_definitions_is_one_that_the_calls_take() -> None:
    (first, *_) = about("shop")
    match = re.fullmatch(r"How does `(\S+)` reach `(\S+)`\?", first)
    assert match is not None
    start, end = match.groups()
    assert start == "Shop.serve"
    middle = callers_of(end if "." in end else f"Shop.{end}")
    assert start not in middle
    assert any(start in callers_of(each) for each in middle)


def test_every_question_names_a_definition_of_the_repositorys_own_code() -> None:
    names = re.findall(r"`([^`]+)`", " ".join(about("shop")))
    assert len(names) >= 4
    own = {"Shop", "serve", "full_dispatch", "dispatch_order", "check", "price", "save_order"}
    assert {name.rpartition(".")[2] for name in names} <= own


def test_definitions_are_asked_about_without_a_call_graph() -> None:
    assert about("clock")[0] == "What does `Clock` do, and where is it used?"


def test_a_repository_without_definitions_is_asked_about_by_its_name() -> None:
    assert all("notes" in question for question in about("notes"))


def test_no_time_at_all_still_leaves_four_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "SECONDS", -1.0)
    project.reset_facts()
    about("shop")


@pytest.mark.parametrize("name", ["shop", "clock", "fleet"])
def test_what_a_question_finds_first_holds_a_definition_that_it_names(
    name: str, client: Client
) -> None:
    for question in about(name):
        body = {"query": question.replace("`", ""), "repository": name, "limit": 1}
        found = post(client, "vector-search", body)
        assert found or "`" not in question
        definitions = [
            (each["relPath"], each["startLine"])
            for named in re.findall(r"`([^`]+)`", question)
            for each in post(client, "symbol-definitions", {"name": named, "repository": name})
        ]
        assert not definitions or any(
            path == found[0]["relPath"] and found[0]["startLine"] <= line <= found[0]["endLine"]
            for path, line in definitions
        ), question


def post(client: Client, tool: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    response = client.post(f"/tools/{tool}", body, content_type="application/json")
    rows: list[dict[str, Any]] = response.json()["results"]
    return rows
