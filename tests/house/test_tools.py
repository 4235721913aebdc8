"""Whoever adds a tool writes it once: what lists the tools is written from them."""

import pytest

from scripts import tools
from tests.house.sources import HOME

pytestmark = [pytest.mark.door, pytest.mark.django_db]


def test_what_lists_the_tools_is_written_from_them() -> None:
    """If this fails: make fix"""
    stale = [
        str(file.relative_to(HOME))
        for file, text in tools.files().items()
        if file.read_text() != text
    ]
    assert stale == [], "make fix writes them"
