"""The fixtures of searches and of symbols."""

import pytest

from apps.browse import page_search
from tests.lookup.symbols.conftest import Post, harbour, post
from tests.retrieval.conftest import Ask, Shelf, ask, shelf
from tests.support.waiting import PATIENCE

__all__ = ["Ask", "Post", "Shelf", "ask", "harbour", "post", "shelf"]


@pytest.fixture(autouse=True)
def a_busy_machine_cuts_nothing_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of what is cut off set these themselves."""
    for limit in ("FILE_SECONDS", "NAME_SECONDS", "EXCLUSION_SECONDS"):
        monkeypatch.setattr(page_search, limit, PATIENCE)
