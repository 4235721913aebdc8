"""Operations ("verbs") on the collections of a Chroma.

Arguments and results go through a pipe if Chroma is embedded (`embedded`). A collection that does
not exist is not an error: it is empty.

A large collection has shards: collections of their own, as Chroma has the whole graph of a
collection in memory while it writes or searches it, 1.7 kB a row. The first has the collection's
name, the others `name.2`, `name.3` and so on.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple, TypeVar

from apps.embedding.types import Vectors
from apps.index.vectors import chroma

Result = TypeVar("Result")
Facts = Mapping[str, Any]

SPACE = "l2"
# HNSW parameters (Malkov and Yashunin, 2016). Rows are added in .7 of the time with 8 neighbours
# instead of 16; because the search is wider, it finds as many as with 16 (docs/benchmarks.md).
# Each sync writes the ids of all rows again; rows that are not synced slow every call.
INDEX = {
    "space": SPACE,
    "max_neighbors": 8,
    "ef_construction": 64,
    "ef_search": 500,
    "sync_threshold": 2_000,
}
NAMES_PAGE = 500
_FURTHER = re.compile(r"(.+)\.[0-9]{1,6}")


class Shard(NamedTuple):
    """A collection of Chroma."""

    id: str  # another one if it is deleted and made again
    about: Facts  # its metadata


class Collections:
    """The verbs on a chromadb client. Raises its errors, which `process` translates."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def shards(self) -> dict[str, Shard]:
        """Return name → shard."""
        return {
            shard.name: Shard(str(shard.id), dict(shard.metadata or {})) for shard in self._listed()
        }

    def create(self, shard: str, about: Facts) -> str:
        """Create a shard. Return its id."""
        created = self._client.create_collection(
            shard, embedding_function=None, configuration={"hnsw": INDEX}, metadata=dict(about)
        )
        return str(created.id)

    def add(self, shard: str, ids: Sequence[str], vectors: Vectors, facts: Sequence[Facts]) -> None:
        """Add the rows whose ids are new.

        vectors: float32 (len(ids), dimension)
        """
        self._find(shard).add(ids=ids, embeddings=vectors, metadatas=facts)

    def delete(self, shard: str, ids: Sequence[str]) -> None:
        """Delete rows. Unknown ids are ignored."""
        self._call(shard, lambda it: it.delete(ids=list(ids)))

    def count(self, shard: str) -> int:
        """Return the number of rows."""
        return self._call(shard, lambda it: int(it.count())) or 0

    def nearest(self, name: str, vector: Vectors, n: int) -> list[tuple[str, float]]:
        """Return id and squared L2 distance of the n nearest of all shards, nearest first."""
        rows: list[tuple[str, float]] = []
        for number in count(1):
            result = self._call(
                shard_name(name, number),
                lambda it: it.query([vector], n_results=n, include=["distances"]),
            )
            if result is None:
                break
            rows += zip(result["ids"][0], result["distances"][0], strict=True)
        return sorted(rows, key=lambda row: row[1])[:n]

    def drop(self, shard: str) -> None:
        """Delete a shard."""
        with suppress(chroma.not_found()):
            self._client.delete_collection(shard)

    def _find(self, shard: str) -> Any:
        return self._client.get_collection(shard, embedding_function=None)

    def _call(self, shard: str, work: Callable[[Any], Result]) -> Result | None:
        """Call `work` with a shard; return None if it does not exist."""
        with suppress(chroma.not_found()):
            return work(self._find(shard))
        return None

    def _listed(self) -> Iterator[Any]:
        offset = 0
        while page := self._client.list_collections(limit=NAMES_PAGE, offset=offset):
            yield from page
            offset += len(page)


def collection_of(shard: str) -> str:
    """The name of the collection of which this is a shard."""
    match = _FURTHER.fullmatch(shard)
    return match[1] if match else shard


def shard_name(name: str, number: int) -> str:
    """The name of a shard of a collection, counted from 1."""
    return name if number == 1 else f"{name}.{number}"
