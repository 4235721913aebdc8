"""What tests share, and what they touch."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.sources import name_of, tracked

pytestmark = pytest.mark.door

TESTS = [file for file in tracked() if file.suffix == ".py" and name_of(file).startswith("tests/")]
OF_A_TEST = re.compile(
    r"^\s*(from|import) tests\.[\w.]*\btest_|^\s*from tests[\w.]* import .*\btest_"
)


def test_what_tests_share_is_in_modules_without_tests() -> None:
    found = [
        f"{name_of(file)}:{number}"
        for file in TESTS
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if OF_A_TEST.match(line)
    ]
    assert found == []


# Names of other packages that have no public one.
OF_OTHERS = {
    *("_replace", "_asdict", "_meta", "_exit", "_proc", "_base_executable", "_waiters"),
    *("_constants", "_parser"),
    *("_fixture_setup", "_fixture_teardown", "_generate_plan"),
    *("_server", "_session", "_admin_client"),
    "_remove_field_index",
}
# How many of ours are left. No file is added.
LEFT = {"tests/ingest/test_cancel.py": 1, "tests/ingest/test_repair.py": 4}


def private_names(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Attribute() if ast.unparse(node.value) not in ("self", "cls"):
                yield node.attr
            case ast.ImportFrom():
                yield from (each.name for each in node.names)
            case ast.Call(func=ast.Attribute(attr="setattr")):
                texts = (each.value for each in node.args if isinstance(each, ast.Constant))
                yield from (str(text).rpartition(".")[2] for text in texts)


def test_tests_use_public_names() -> None:
    counts = {
        name_of(file): sum(
            bool(re.fullmatch(r"_[a-zA-Z]\w*", name)) and name not in OF_OTHERS
            for name in private_names(file)
        )
        for file in TESTS
    }
    assert {name: n for name, n in counts.items() if n > LEFT.get(name, 0)} == {}


# Both fail on a machine that is busy: httpx gives up after five seconds, and what Playwright waits
# for in a page is a text that our policy lets nobody evaluate, unless it is true at the first look.
HURRIED = re.compile(r"^(request|get|post|put|patch|delete|stream|(Async)?Client)$")


def hurried(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="httpx"), attr=name)) if (
                HURRIED.match(name) and not {"timeout", None} & {key.arg for key in node.keywords}
            ):
                yield f"{name_of(file)}:{node.lineno} needs a timeout"
            case ast.Attribute(attr="wait_for_function"):
                yield f"{name_of(file)}:{node.lineno} waits by `wait_until`, or `expect`"


def test_tests_wait_as_long_as_it_takes() -> None:
    assert [line for file in TESTS for line in hurried(file)] == []


# What Playwright reads once and does not wait for: a page that is still being drawn, or that its
# socket has just changed, has another state a moment later. `expect(...)` and `wait_until` wait.
AT_ONCE = {
    *("all", "all_inner_texts", "all_text_contents", "bounding_box", "count", "get_attribute"),
    *("inner_html", "inner_text", "input_value", "is_checked", "is_disabled", "is_editable"),
    *("is_enabled", "is_hidden", "is_visible", "text_content"),
}
# Each is in tests/browser/chromium.py, and waits there until the page has what it asks for.
OF_CHROMIUM = {
    "goto": "go",
    "reload": "load_again",
    "new_context": "new_context",
    "wait_for_load_state": "settled",
    "wait_for_timeout": "settled",
}


def unsteady(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Assert():
                names = {
                    part.attr for part in ast.walk(node.test) if isinstance(part, ast.Attribute)
                }
                if names & AT_ONCE or "page.url" in ast.unparse(node.test):
                    yield f"{name_of(file)}:{node.lineno} needs `expect`, or `wait_until`"
            case ast.Call(func=ast.Attribute(attr=name)) if name in OF_CHROMIUM:
                yield f"{name_of(file)}:{node.lineno} needs `{OF_CHROMIUM[name]}`"
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="mouse"), attr="click")):
                yield f"{name_of(file)}:{node.lineno} clicks where something was: give a locator"


WAITING = {f"tests/browser/{name}.py" for name in ("chromium", "conftest")}


def test_browser_tests_look_at_a_page_that_has_settled() -> None:
    names = {name_of(file): file for file in TESTS if name_of(file).startswith("tests/browser/")}
    assert [line for name in names.keys() - WAITING for line in unsteady(names[name])] == []
