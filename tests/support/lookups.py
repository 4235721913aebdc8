"""Look-ups that read the word index, and look-ups that read parts alone."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apps.index import queries
from apps.index.installation import installation_id
from apps.index.lexical import LexicalStore
from apps.index.mapped.copies import get_copies
from apps.retrieval.root_cache import RootCache, load

LOOKUPS = ("definitions", "symbols_beginning", "outline")


@pytest.fixture(params=["words", "parts"])
def lookups(
    request: pytest.FixtureRequest,
    db: None,
    configure: Callable[..., None],
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """Run a test twice, for the roots that are ingested before it."""
    if request.param == "words":
        yield
        return
    settings.LOOKUPS_READ_PARTS = True
    configure(retrieval_memory_mb=64)
    monkeypatch.setattr("apps.retrieval.root_cache.root_cache", RootCache())
    roots, lock = queries.published_roots(), queries.index_lock()
    assert lock is not None
    for root in roots:
        live = queries.live_file_ids(root)
        assert load(root, lock.dimension, live, installation_id()) is not None
    for verb in LOOKUPS:
        monkeypatch.setattr(LexicalStore, verb, _refused)
    yield
    for root in roots:
        get_copies().drop(root.store)


def _refused(*arguments: object) -> None:
    pytest.fail("the word index was asked")
