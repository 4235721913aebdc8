"""Facts of a file that its path shows, in any language."""

import pytest

from apps.code import paths


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("src/client.py", set()),
        ("tests/client.py", {"test"}),
        ("src/client_test.go", {"test"}),
        ("src/client.test.ts", {"test"}),
        ("src/client.spec.js", {"test"}),
        ("gson/ClientTest.java", {"test"}),
        ("Unit tests/install", {"test"}),
        ("spec/client_spec.rb", {"test"}),
        ("src/latest.py", set()),
        ("src/contest/entry.py", set()),
        ("src/specification.py", set()),
        ("src/Protest.java", set()),
        ("examples/hello.go", {"example"}),
        ("benches/speed.rs", {"example"}),
        ("README.md", {"prose"}),
        ("docs/conf.py", {"prose"}),
        ("package.json", {"data"}),
        ("src/_compat/v1.py", {"legacy"}),
        ("src/vendors/oracle.kt", set()),
        ("tests/data/input.json", {"test", "data"}),
    ],
)
def test_folder_name_and_suffix_give_the_kinds(path: str, kinds: set[str]) -> None:
    assert paths.kinds(path) == kinds


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("src/http/client.py", "client"),
        ("src/parser/__init__.py", "parser"),
        ("src/parser/mod.rs", "parser"),
        ("src/parser/index.ts", "parser"),
        ("index.ts", "index"),
        ("src/Client.Http.cs", "Client.Http"),
        ("Makefile", "Makefile"),
        (".env", ".env"),
    ],
)
def test_an_index_file_has_the_name_of_its_folder(path: str, name: str) -> None:
    assert paths.descriptive_name(path) == name


def test_a_declaration_file_has_a_sibling_that_defines() -> None:
    beside = {"lib/mime.h", "lib/mime.c", "lib/only.h", "web/api.d.ts", "web/api.js", "a/core.py"}
    assert paths.declarations_beside(beside) == {"lib/mime.h", "web/api.d.ts"}


def test_a_header_and_its_source_may_be_in_different_folders() -> None:
    assert paths.declarations_beside({"include/pool.hpp", "src/pool.cpp"}) == {"include/pool.hpp"}


def test_the_older_of_two_versions_side_by_side_is_superseded() -> None:
    files = {"api/v1/users.go", "api/v2/users.go", "api/v2/new.go", "other/v1/x.go", "api/users.go"}
    assert paths.superseded(files, "list users") == {"api/v1/users.go"}


def test_versions_compare_as_numbers_and_may_be_file_names() -> None:
    assert paths.superseded({"m/v9.sql", "m/v10.sql"}, "users") == {"m/v9.sql"}


def test_a_version_that_the_query_names_is_not_superseded() -> None:
    files = {"api/v1/users.go", "api/v2/users.go"}
    assert paths.superseded(files, "users in the V1 api") == set()


def test_only_index_files_are_recognised_as_such() -> None:
    assert [paths.is_index(p) for p in ("a/__init__.py", "index.ts", "mod.rs", "a/model.rs")] == [
        True, True, True, False,
    ]  # fmt: skip
