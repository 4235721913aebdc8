"""Calls of a method that others override, at POST /tools/vector-search and symbol-definitions."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lookup.shaped import ask, unhurried
from tests.lookup.symbols.conftest import Post, post
from tests.support.ingested import ingested_once

__all__ = ["post", "unhurried"]

pytestmark = [pytest.mark.django_db, pytest.mark.door]

FILES: dict[str, str | bytes] = {
    "fleet.py": (
        "class Ship:\n    def sail(self):\n        raise NotImplementedError\n\n\n"
        "class Tug(Ship):\n    def sail(self):\n        burn_coal()\n\n\n"
        "class Steamer(Tug):\n    def sail(self):\n        heat_boiler()\n\n\n"
        "def burn_coal():\n    pass\n\n\ndef heat_boiler():\n    pass\n\n\n"
        "def depart(ship: Ship):\n    ship.sail()\n\n\ndef sail():\n    fly_kite()\n\n\n"
        "def fly_kite():\n    pass\n"
    ),
    "fleet.ts": (
        "interface Boat { row(): void }\nclass Skiff implements Boat {\n"
        "  row(): void { pullOars() }\n}\nfunction pullOars(): void {}\n"
        "export function launch(boat: Boat): void {\n  boat.row()\n}\n"
    ),
    "Fleet.java": (
        "interface Barge { void tow(); }\nclass River implements Barge {\n"
        "  public void tow() { hitchRope(); }\n  static void hitchRope() {}\n}\n"
        "class Lock {\n  void openGate(Barge barge) { barge.tow(); }\n}\n"
    ),
    "fleet.go": (
        "package fleet\n\ntype Ferry interface {\n\tCross() error\n}\n\ntype Cable struct{}\n\n"
        "func (c *Cable) Cross() error { return pullCable() }\n\n"
        "func pullCable() error { return nil }\n\n"
        "func Board(ferry Ferry) error {\n\treturn ferry.Cross()\n}\n"
    ),
    "lib.rs": (
        "pub trait Raft {\n    fn drift(&self);\n}\npub struct Log;\nimpl Raft for Log {\n"
        "    fn drift(&self) {\n        roll_over();\n    }\n}\nfn roll_over() {}\n"
        "pub fn push_off(raft: &dyn Raft) {\n    raft.drift();\n}\n"
    ),
    "fleet.cc": (
        "class Yacht { public: virtual void tack(); };\n"
        "class Sloop : public Yacht { public: void tack() override; };\nvoid swingBoom() {}\n"
        "void Sloop::tack() { swingBoom(); }\nvoid race(Yacht* yacht) { yacht->tack(); }\n"
    ),
    "alias.rb": "module Port\n  Jetty = Harbour::Jetty # another name\nend\n",
    "jetty.rb": "module Harbour\n  class Jetty\n    def moor\n    end\n  end\nend\n",
    "lamp.py": (
        "class Lamp:\n    def shine(self):\n        pass\n\n\n"
        "class OilLamp:\n    def shine(self):\n        pass\n"
    ),
}


@pytest.fixture(scope="module", autouse=True)
def fleet(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("overriding")))
    with ingested_once(django_db_blocker, base, {"fleet": FILES}):
        yield


def steps(answer: dict[str, Any]) -> list[str]:
    return [
        f"{row['symbol']} {'->' if row['certainty'] == 'proven' else '~>'} {row['of']}"
        for row in answer["rows"]
        if row["kind"] == "step"
    ]


@pytest.mark.parametrize(
    ("start", "end", "way"),
    [
        ("depart", "burn_coal", ["depart ~> Tug.sail", "Tug.sail -> burn_coal"]),
        ("depart", "heat_boiler", ["depart ~> Steamer.sail", "Steamer.sail -> heat_boiler"]),
        ("launch", "pullOars", ["launch ~> Skiff.row", "Skiff.row -> pullOars"]),
        (
            "openGate",
            "hitchRope",
            ["Lock.openGate ~> River.tow", "River.tow -> River.hitchRope"],
        ),
        ("Board", "pullCable", ["Board ~> Cable.Cross", "Cable.Cross -> pullCable"]),
        ("push_off", "roll_over", ["push_off ~> Log.drift", "Log.drift -> roll_over"]),
        ("race", "swingBoom", ["race ~> Sloop.tack", "Sloop.tack -> swingBoom"]),
    ],
)
def test_a_path_may_go_through_a_method_that_overrides_the_called_one(
    post: Post, start: str, end: str, way: list[str]
) -> None:
    assert steps(ask(post, f"How does `{start}` reach `{end}`?")) == way


def test_a_function_with_the_name_of_a_method_does_not_override_it(post: Post) -> None:
    answer = ask(post, "How does `depart` reach `fly_kite`?")
    assert steps(answer) == []
    assert answer["notes"] == ["Nothing was found: no way of calls from depart to fly_kite."]


@pytest.mark.parametrize(
    ("method", "row"), [("Ferry.Cross", "Cable.Cross"), ("Raft.drift", "Log.drift")]
)
def test_methods_of_interfaces_and_traits_are_overridden_outside_of_types(
    post: Post, method: str, row: str
) -> None:
    answer = ask(post, f"What overrides `{method}`?")
    assert [r["symbol"] for r in answer["rows"] if r["kind"] == "implementation"] == [row]


def test_a_scope_is_meant_before_a_file_of_its_name(post: Post) -> None:
    status, answer = post("symbol-definitions", name="Lamp.shine")
    assert status == 200
    assert [row["symbol"] for row in answer["results"]] == ["Lamp.shine"]


def test_another_name_comes_after_what_it_names(post: Post) -> None:
    _, answer = post("symbol-definitions", name="Jetty")
    assert [row["symbol"] for row in answer["results"]] == ["Harbour.Jetty", "Port.Jetty"]
