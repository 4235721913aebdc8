"""What tests share, and what they touch."""

import re

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
