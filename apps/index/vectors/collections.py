"""Operations ("verbs") on the collections of a Chroma.

Arguments and results are arrays, strings, numbers and lists, as they go through a pipe if Chroma is
embedded. A collection that does not exist is not an error: it is empty.

A large collection of an embedded Chroma has shards: collections of their own, as Chroma has the
whole graph of a collection in memory while it writes or searches it, 1.7 kB a row. The first
has the collection's name, the others `name.2`, `name.3` and so on. Rows are added to the last one.
"""

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np

from apps.core.concurrency.ingest_throttle import WRITE_SLICE
from apps.core.errors import Unavailable
from apps.core.monitoring.telemetry import span, tell
from apps.embedding.types import Vectors
from apps.index.vectors import chroma
from apps.index.vectors.database import Database
from apps.index.vectors.handles import Facts, Handles

P = ParamSpec("P")
Result = TypeVar("Result")
# A shard that has so many rows takes no more: 350 MB of memory.
SHARD_ROWS = 200_000
_SHARD = re.compile(r"(.+)\.([0-9]{1,6})")
# Collections queried at the same time. Chroma releases the GIL while it searches.
QUERY_THREADS = 4


class Added(NamedTuple):
    """Where rows were added."""

    shard: str
    is_first: bool  # whether this created the collection
    is_next: bool = False  # whether this created the shard, as the one before is full


class Collections:
    """The verbs on a chromadb client. Raises Unavailable CHROMA_UNAVAILABLE or CHROMA_CRASHED."""

    def __init__(self, client: Any, folder: Path | None = None) -> None:
        """`folder` has the files of an embedded Chroma; None for a server."""
        self._client = client
        self._folder = folder
        self._lock = threading.Lock()
        self._handles = Handles(client)
        # Collection → its shards, of those that have several. A server's are not added to.
        self._shards: dict[str, list[str]] | None = None
        self._rows: dict[str, int] = {}  # shard → its rows, or more
        self._database = Database(folder / "chroma.sqlite3") if folder else None
        self._threads = ThreadPoolExecutor(QUERY_THREADS, thread_name_prefix="chroma-ask")

    @span("chroma")
    def call(
        self,
        verb: Callable[Concatenate["Collections", P], Result],
        *args: P.args,
        **options: P.kwargs,
    ) -> Result:
        """Call a verb in this process; `process.Embedded.call` does so in a child."""
        tell(verb=verb.__name__)
        return verb(self, *args, **options)

    def each(
        self, verb: Callable[..., Result], calls: Sequence[tuple[Any, ...]]
    ) -> list[tuple[bool, Result | Unavailable]]:
        """Call a verb that reads for several argument tuples, in parallel.

        Return (True, result) or (False, error) for each. Raises Unavailable CHROMA_CRASHED if any
        call crashes Chroma, as the other results cannot be relied on then.
        """

        def one(call: tuple[Any, ...]) -> tuple[bool, Result | Unavailable]:
            try:
                return True, verb(self, *call)
            except Unavailable as error:
                if error.code == chroma.CRASHED:
                    raise
                return False, error

        if len(calls) < 2:
            return [one(call) for call in calls]
        return list(self._threads.map(one, calls))

    def shards(self, name: str) -> list[str]:
        """Return the names of the shards of a collection, which may not exist. Each is a collection
        for all verbs."""
        with self._lock:
            if self._shards is None:
                self._shards = _shards_in(each.name for each in self._handles.each())
            return list(self._shards.get(name, [name]))

    def add(self, name: str, about: Facts, ids: Sequence[str], vectors: Vectors) -> Added:
        """Add the rows whose ids are new. Create the collection if it is missing.

        about: metadata of a created collection
        vectors: float32 (len(ids), dimension)
        """
        shards = self.shards(name)
        last, others = shards[-1], shards[:-1]
        if self._is_full(last):
            last, others = _next_shard(name, last), shards
        known = {each for shard in others for each in self._existing(shard, ids)}
        if known:
            new = [row for row, each in enumerate(ids) if each not in known]
            ids, vectors = [ids[row] for row in new], vectors[new]
            if not ids:
                return Added(shards[-1], is_first=False)
        created: list[str] = []

        def create() -> Any:
            # A further shard is of a collection that is large already.
            first_rows = len(ids) if last == name else WRITE_SLICE
            handle, is_new = self._handles.create(last, about, first_rows)
            created.extend([last] * is_new)
            return handle

        self._write(last, lambda it: it.add(ids=ids, embeddings=vectors), create)
        with self._lock:
            if last not in shards and self._shards is not None:
                self._shards[name] = [*shards, last]
            self._rows[last] = self._rows.get(last, 0) + len(ids)
        return Added(last, is_first=name in created, is_next=last not in shards)

    def nearest(self, name: str, vector: Vectors, n: int) -> list[tuple[str, float]]:
        """Return id and squared L2 distance of the n nearest, nearest first."""
        shards = self.shards(name)
        found = [row for shard in shards for row in self._nearest(shard, vector, n)]
        return sorted(found, key=lambda row: row[1])[:n] if len(shards) > 1 else found

    def _nearest(self, shard: str, vector: Vectors, n: int) -> list[tuple[str, float]]:
        result = self._handles.call(
            shard, lambda it: it.query([vector], n_results=n, include=["distances"])
        )
        return list(zip(result["ids"][0], result["distances"][0], strict=True)) if result else []

    def vectors(self, name: str, ids: Sequence[str]) -> tuple[list[str], Vectors]:
        """Return the ids that exist, in any order, and their vectors, float32 (n, dimension)."""
        existing: list[str] = []
        vectors: list[Vectors] = []
        for shard, of_shard in self._placed(name, ids):
            result = self._handles.call(shard, partial(_vectors_of, of_shard))
            if result and result["ids"]:
                existing += result["ids"]
                vectors.append(np.asarray(result["embeddings"], np.float32))
        return existing, np.concatenate(vectors) if vectors else np.zeros((0, 0), np.float32)

    def existing(self, name: str, ids: Sequence[str]) -> list[str]:
        """Return which of these rows exist, in any order."""
        rows: list[str] = []
        for shard, of_shard in self._placed(name, ids):
            result = self._handles.call(shard, partial(_existing_of, of_shard))
            rows += result["ids"] if result else []
        return rows

    def ids(self, name: str, limit: int, offset: int = 0) -> list[str]:
        """Return a page of the ids of all rows."""
        page: list[str] = []
        for shard in self.shards(name):
            if found := self._ids(shard, limit - len(page), offset):
                page += found
                offset = 0
            elif offset:
                offset -= self._count(shard)
            if len(page) == limit:
                break
        return page

    def _ids(self, shard: str, limit: int, offset: int) -> list[str]:
        if self._database and (ids := self._database.ids(shard, limit, offset)) is not None:
            return ids
        result = self._handles.call(
            shard, lambda it: it.get(limit=limit, offset=offset, include=[])
        )
        return list(result["ids"]) if result else []

    def delete(self, name: str, ids: Sequence[str]) -> None:
        """Delete rows. Unknown ids are ignored."""
        for shard, of_shard in self._placed(name, ids):
            self._write(shard, partial(_delete, of_shard))

    def count(self, name: str) -> int:
        """Return the number of rows."""
        return sum(map(self._count, self.shards(name)))

    def _count(self, shard: str) -> int:
        if self._database and (count := self._database.count(shard)) is not None:
            return count
        return self._handles.call(shard, lambda it: int(it.count())) or 0

    def _is_full(self, shard: str) -> bool:
        """Whether rows that are added go to another shard. A server's memory is its own."""
        if self._folder is None:
            return False
        if self._rows.get(shard, SHARD_ROWS) >= SHARD_ROWS:
            self._rows[shard] = self._count(shard)
        return self._rows[shard] >= SHARD_ROWS

    def _placed(self, name: str, ids: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
        """Return the shards that have some of these ids, each with its own. The only shard has
        all."""
        shards = self.shards(name)
        if len(shards) == 1:
            return [(name, ids)]
        existing = [(shard, self._existing(shard, ids)) for shard in shards]
        return [(shard, sorted(of_shard)) for shard, of_shard in existing if of_shard]

    def _existing(self, shard: str, ids: Sequence[str]) -> set[str]:
        """Return those of some ids that a shard has."""
        if self._database and (found := self._database.existing(shard, ids)) is not None:
            return found
        result = self._handles.call(shard, lambda it: it.get(ids=list(ids), include=[]))
        return set(result["ids"]) if result else set()

    def names(self) -> list[str]:
        """Return the names of all collections, without their shards."""
        return list(self.descriptions())

    def descriptions(self) -> dict[str, dict[str, Any]]:
        """Return collection name → metadata of the collection, without their shards."""
        return {
            each.name: dict(each.metadata or {})
            for each in self._handles.each()
            if not _SHARD.fullmatch(each.name)
        }

    def description(self, name: str) -> dict[str, Any] | None:
        """Return the metadata of a collection, read from Chroma and not from a cached handle; None
        if there is no collection."""
        try:
            with chroma.chroma_errors():
                return dict(self._handles.find(name).metadata or {})
        except Unavailable as error:
            if chroma.is_missing(error):
                return None
            raise

    def describe(self, name: str, facts: Facts) -> None:
        """Update the metadata of a collection, if there is one."""
        current = self.description(name)
        if current is not None:
            self._handles.call(name, lambda it: it.modify(metadata={**current, **facts}))

    def drop(self, name: str) -> None:
        """Delete a collection: its first shard last, without which the others are not known."""
        for shard in reversed(self.shards(name)):
            self._drop(shard)
        with self._lock:
            if self._shards is not None:
                self._shards.pop(name, None)

    def _drop(self, name: str) -> None:
        self._handles.forget(name)
        self._rows.pop(name, None)
        if self._folder:
            chroma.note_dropped(self._folder, name)
        try:
            with chroma.chroma_errors():
                self._client.delete_collection(name)
        except Unavailable as error:
            if not chroma.is_missing(error):
                raise

    def restart(self) -> None:
        """Do nothing: a server is not restarted."""

    def free_memory(self) -> None:
        """Do nothing: the memory of a server is its own."""

    def diagnose(self, names: Sequence[str], error: Unavailable) -> None:
        """Do nothing: the files of a server are not accessible."""

    def set_aside(self, names: Sequence[str]) -> Path | None:
        """Return None: the files of a server are not accessible."""
        return None

    def sweep(self) -> list[str]:
        """Remove index folders of dropped collections (embedded only). Return their names."""
        return chroma.sweep(self._folder) if self._folder else []

    @contextmanager
    def paused(self) -> Iterator[Path | None]:
        """Yield None: the files of a server are not accessible."""
        yield None

    def close(self) -> None:
        """Close Chroma's files or connections."""
        self._threads.shutdown()
        self._client.close()

    def _write(
        self, shard: str, work: Callable[[Any], Any], create: Callable[[], Any] | None = None
    ) -> None:
        try:
            self._handles.call(shard, work, create)
        except Unavailable:
            if self._database:
                self._database.doubt(shard)
            raise


def _shards_in(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the collections that have several shards → these, in order."""
    numbers: dict[str, list[int]] = {}
    for each in names:
        if match := _SHARD.fullmatch(each):
            numbers.setdefault(match[1], []).append(int(match[2]))
    return {
        name: [name, *(f"{name}.{number}" for number in sorted(of_name))]
        for name, of_name in numbers.items()
    }


def _next_shard(name: str, last: str) -> str:
    match = _SHARD.fullmatch(last)
    return f"{name}.{int(match[2]) + 1 if match else 2}"


def _vectors_of(ids: Sequence[str], collection: Any) -> Any:
    return collection.get(ids=ids, include=["embeddings"])


def _existing_of(ids: Sequence[str], collection: Any) -> Any:
    return collection.get(ids=ids, include=[])


def _delete(ids: Sequence[str], collection: Any) -> None:
    collection.delete(ids=ids)
