"""POST /tools/file-outline: the nested definitions of a file."""

from pathlib import Path
from typing import Any

import pytest

from apps.code.values import Symbol
from apps.lookup.symbols.outline import nested
from apps.lookup.symbols.types import OutlineItem
from tests.lookup.symbols.conftest import Post
from tests.support.ingested import ingest, write_files

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.door,
    pytest.mark.usefixtures("harbour"),
]


def tree(items: list[dict[str, Any]]) -> list[Any]:
    return [
        [f"{each['kind']} {each['name']} {each['startLine']}-{each['endLine']}"]
        + tree(each.get("children", []))
        for each in items
    ]


def test_the_outline_is_nested_and_in_order(harbour: Path, post: Post) -> None:
    status, answer = post("file-outline", repository="harbour", path="src/harbour/client.py")
    assert status == 200
    assert answer.pop("index")
    assert tree(answer.pop("symbols")) == [
        ["constant TIMEOUT 5-5"],
        [
            "class Client 8-18",
            ["method moor 11-15", ["function helper 13-14"]],
            ["method _secret 17-18"],
        ],
    ]
    path = f"{harbour}/src/harbour/client.py"
    assert answer == {
        "repo": "harbour",
        "relPath": "src/harbour/client.py",
        "containerPath": path,
        "hostPath": path,
        "language": "python",
    }


def test_a_definition_has_its_path_and_signature(harbour: Path, post: Post) -> None:
    _, answer = post("file-outline", repository="quay", path="./main.go")
    assert answer["symbols"][1] == {
        "name": "Moor",
        "symbol": "Ship.Moor",
        "kind": "method",
        "startLine": 6,
        "endLine": 8,
        "signature": "func (s *Ship) Moor() error",
    }


def test_headings_are_the_outline_of_a_document(harbour: Path, post: Post) -> None:
    _, answer = post("file-outline", repository="harbour", path="docs/guide.md")
    assert tree(answer["symbols"]) == [["heading Moor 1-5", ["heading Ship 3-5"]]]


def test_a_file_that_defines_nothing_has_an_empty_outline(harbour: Path, post: Post) -> None:
    status, answer = post("file-outline", repository="harbour", path="notes.txt")
    assert (status, answer["symbols"]) == (200, [])


def test_definitions_on_one_line_are_nested_by_their_paths() -> None:
    symbols = [stored(path, 1, 1) for path in ("Kind", "Kind.A", "Kind.B", "Kinds")]
    kind, kinds = nested(symbols)
    assert [child.path for child in kind.children] == ["Kind.A", "Kind.B"]
    assert kinds.children == []


def test_a_definition_that_ends_later_is_not_nested() -> None:
    outer, inner, after = nested([stored("A", 1, 9), stored("A.b", 10, 12), stored("C", 20, 21)])
    assert not outer.children
    assert [each.path for each in (inner, after)] == ["A.b", "C"]
    assert isinstance(inner, OutlineItem)


def test_a_macro_that_is_defined_again_is_listed_once(post: Post, folder: Path) -> None:
    branches = (
        "#ifdef FAST\n#define LIMIT 9\n#define PORT(n) (n)\n#else\n#define LIMIT 1\n#endif\n"
        "int limit(void);\nint limit(void) { return LIMIT; }\n"
    )
    ingest(write_files(folder, {"limit.c": branches}), "fleet")
    _, answer = post("file-outline", repository="fleet", path="limit.c")
    assert tree(answer["symbols"]) == [
        ["macro LIMIT 2-2"],
        ["macro PORT 3-3"],
        ["prototype limit 7-7"],
        ["function limit 8-8"],
    ]


def stored(path: str, start: int, end: int) -> Symbol:
    name = path.rpartition(".")[2]
    return Symbol(name, path, "class", start, end)
