"""docs/faults.md says what happens, and each paragraph is shown by tests that name it."""

import pytest

from scripts import faults

pytestmark = pytest.mark.door


def test_every_fault_is_shown_by_a_test_and_every_mark_names_a_fault() -> None:
    described = {line[4:] for line in faults.headings() if line.startswith("### ")}
    assert described == set(faults.by_fault())


def test_the_index_is_that_of_the_tests() -> None:
    """If this fails: python scripts/faults.py"""
    assert faults.INDEX.read_text() == faults.index()
