"""Look-ups that read parts, where these cannot answer."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.index import opened, symbols
from apps.index.installation import installation_id
from apps.index.mapped.copies import get_copies
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root
from apps.index.queries import live_file_ids
from apps.retrieval.root_cache import load
from tests.lookup.symbols.conftest import Post

pytestmark = [pytest.mark.django_db, pytest.mark.door]


@pytest.fixture
def damaged(harbour: Path) -> MappedRoot:
    """The copy of `harbour`, whose definitions have changed since it was mapped."""
    root = Root.objects.get(name="harbour")
    mapped = load(root, 256, live_file_ids(root), installation_id())
    get_copies().drop(root.store)
    assert mapped is not None
    (live,) = mapped.parts
    definitions = live.part.definitions
    broken = definitions._replace(content=np.zeros_like(definitions.content))
    return replace(mapped, parts=[replace(live, part=replace(live.part, definitions=broken))])


def test_a_damaged_part_leaves_the_look_up_to_the_words(
    damaged: MappedRoot,
    post: Post,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    expected = post("symbol-definitions", name="Ship", repository="harbour")
    assert len(expected[1]["results"]) > 1
    settings.LOOKUPS_READ_PARTS = True
    monkeypatch.setattr(symbols, "mapped", lambda root: damaged)
    with caplog.at_level(logging.WARNING):
        assert post("symbol-definitions", name="Ship", repository="harbour") == expected
    assert "mapped copy not usable" in caplog.text


def test_a_root_that_is_not_mapped_is_looked_up_in_the_words(
    harbour: Path, post: Post, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LOOKUPS_READ_PARTS = True
    monkeypatch.setattr(opened, "caches", [])
    assert len(post("symbol-definitions", name="Ship", repository="harbour")[1]["results"]) > 1
