"""The house as docs/architecture.md draws it: one direction, no circles, no room too large."""

import tomllib
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

from tests.house.sources import HOME, name_of, product

pytestmark = pytest.mark.door

LARGEST_SHARE = 1 / 5


def room_of(name: str) -> str:
    """The room of a file, named from the top of the project."""
    parts = name.split("/")
    return parts[1] if parts[0] == "apps" and len(parts) > 2 else parts[0]


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("apps", "codeinfo", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' <- '.join(error.args[1])}")


def test_no_room_is_above_a_fifth_of_the_house() -> None:
    lines: dict[str, int] = {}
    for file in product():
        room = room_of(name_of(file))
        lines[room] = lines.get(room, 0) + len(file.read_text().splitlines())
    total = sum(lines.values())
    assert {room: n for room, n in lines.items() if n > total * LARGEST_SHARE} == {}


def test_every_room_is_in_the_import_contracts() -> None:
    project = tomllib.loads((HOME / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = {each.strip() for layer in contracts[0]["layers"] for each in layer.split("|")}
    rooms = {room_of(name_of(file)) for file in product()} - {"apps", "codeinfo"}
    assert layers == {"codeinfo", *(f"apps.{room}" for room in rooms)}
