"""An embedded Chroma of a test's own, and what it has."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.index.models import Root
from apps.index.vectors import chroma
from apps.index.vectors.follower import Follower
from apps.index.vectors.following import following
from apps.index.vectors.store import client, folder
from tests.support.following import chroma_deleted
from tests.support.parts import chunk_ids

Configure = Callable[..., None]


@pytest.fixture(autouse=True)
def chroma_folder(index: None, configure: Configure, tmp_path: Path) -> Iterator[Path]:
    """An embedded Chroma that nobody else has."""
    data = tmp_path / "data"
    data.mkdir()
    configure(chroma="follow", data_dir=data)
    with chroma_deleted():
        yield data / "chroma"


def stored() -> dict[str, dict[str, Any]]:
    """Chunk id → vector, metadata and collection, of all that is in Chroma's folder."""
    client().close()
    opened = chroma.open_embedded(folder())
    rows: dict[str, dict[str, Any]] = {}
    try:
        for shard in opened.list_collections():
            got = shard.get(include=["embeddings", "metadatas"])
            found = zip(got["ids"], got["embeddings"], got["metadatas"], strict=True)
            for key, vector, facts in found:
                assert key not in rows, "a row is in two shards"
                rows[key] = {"vector": vector, "shard": shard.name, **facts}
    finally:
        opened.close()
        opened.clear_system_cache()
    return rows


def ids_of(*roots: Root) -> list[str]:
    return sorted({key for root in roots for key in chunk_ids(root)})


def turn_until_complete(follower: Follower) -> list[str]:
    """Follow again and again, and return the state after each attempt."""
    states = []
    while not states or states[-1] != "complete":
        assert len(states) < 6, following()
        follower.turn()
        states.append(following().state)
    return states
