"""The vectors and texts of chunks, in Chroma: one collection per root.

A chunk is one Chroma record: its id, its vector, and metadata of three keys. `runId` and
`sourceFile` are there to delete by; `record` is everything else, the text too, as one JSON string.
Chroma 1.5 makes a row and two index entries of every key, and a trigram index of every document
that nobody asks for: with a document and a key for each fact 800 chunks a second went in where this
way 2,200 do, and a query took twice as long.

Chroma does one thing at a time. Writes are therefore cut into slices (`ingest_throttle`).

A collection can break without the others: then it fails alone. `examine` tells whether it has,
`set_aside` takes it out of the way, and `set_store_aside` does so with a store that is broken as a
whole.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

import numpy as np

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.ingest_throttle import ingest_throttle
from apps.embedding.types import Vectors
from apps.index.types import Check, Origin, StoredMatch, VectorRecord, never_cancelled
from apps.index.vectors import aside, chroma
from apps.index.vectors.chroma import failed
from apps.index.vectors.collections import Collections, pages
from apps.index.vectors.guarded import Client, Guarded, are_true
from apps.index.vectors.packing import description, match, origin_in, packed, unit_rows
from apps.index.vectors.process import Embedded

P = ParamSpec("P")
Result = TypeVar("Result")

READ_SLICE = 5_000
# Records with their texts, 1 MB or so at once.
RECORDS_SLICE = 500
# 30 ms of work, as a slice of a write.
VECTORS_SLICE = 1_000
# Rows that go with their collection in one call, a second's work: a quarter of a million took more
# than CALL_SECONDS on a busy machine. Those above go before, half a second's work in each call.
MOST_DROPPED, DROP_SLICE = 20_000, 2_000


class VectorStore:
    """All verbs on vectors. Safe from any thread.

    Errors: Unavailable(CHROMA_UNAVAILABLE) where Chroma is away or fails, (CHROMA_CRASHED) where
    it crashed, (CHROMA_BROKEN) where the whole store is broken. A root without a collection is no
    error: it holds nothing.
    """

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = Guarded(client)
        self._prefix = prefix

    def add(
        self,
        root_id: UUID,
        model: str,
        records: Sequence[VectorRecord],
        vectors: Vectors,
        origin: Origin | None = None,
    ) -> list[str]:
        """Keep records under their vectors, of any length, shape (len(records), dimension). A
        collection that is made for them says that it is of `origin`.

        Answers the ids that were refused, because their vector is zero or not finite. An id that
        is there already stays as it is.
        """
        units, good = unit_rows(vectors)
        kept = [record for record, fine in zip(records, good, strict=True) if fine]
        units = units[good]
        name, about = self._name(root_id), description(root_id, model, units.shape[1], origin)
        for part in ingest_throttle.write_slices(len(kept)):
            ids = [record.id for record in kept[part]]
            facts = [packed(record) for record in kept[part]]
            self._client.ask(Collections.add, name, about, ids, units[part], facts)
        return [record.id for record, fine in zip(records, good, strict=True) if not fine]

    def query(self, root_id: UUID, vector: Vectors, n: int) -> list[StoredMatch]:
        """The n nearest, nearest first; distances are 2 - 2·cos. None to a vector of zero."""
        units, good = unit_rows(vector.reshape(1, -1))
        if n < 1 or not good[0]:
            return []
        found = self._each(Collections.query, {root_id: (units[0], n)})[root_id]
        return [match(*row) for row in found]

    def nearest(self, root_id: UUID, vector: Vectors, n: int) -> list[tuple[str, float]]:
        """Ids and distances of the n nearest, nearest first: a third of the time of `query`."""
        return self.nearest_each([root_id], vector, n)[root_id]

    def nearest_each(
        self, root_ids: Sequence[UUID], vector: Vectors, n: int
    ) -> dict[UUID, list[tuple[str, float]]]:
        """The n nearest of each of these roots, asked for all at once. A root whose collection
        fails is left out; where all do, the failure is raised."""
        units, good = unit_rows(vector.reshape(1, -1))
        if n < 1 or not good[0]:
            return {root_id: [] for root_id in root_ids}
        return self._each(Collections.nearest, dict.fromkeys(root_ids, (units[0], n)))

    def distances(self, root_id: UUID, vector: Vectors, ids: Sequence[str]) -> dict[str, float]:
        """The exact distance of each of these records; ids that are not there are left out.

        Empty for a vector of zero, which has none.
        """
        return self.distances_each({root_id: ids}, vector)[root_id]

    def distances_each(
        self, ids: Mapping[UUID, Sequence[str]], vector: Vectors
    ) -> dict[UUID, dict[str, float]]:
        """The same for records of several roots, asked for all at once. None of a root whose
        collection fails; where all do, the failure is raised."""
        units, good = unit_rows(vector.reshape(1, -1))
        queries = {
            root_id: list(of_root) for root_id, of_root in ids.items() if of_root and good[0]
        }
        calls = {root_id: (units[0], of_root) for root_id, of_root in queries.items()}
        found = self._each(Collections.distances, calls)
        return {root_id: found.get(root_id, {}) for root_id in ids}

    def vectors(self, root_id: UUID, ids: Sequence[str]) -> Vectors | None:
        """The vectors of these records in their order, one a row; None where one is not there.

        Asked for in slices, each in its turn, and not as a question: nobody waits for it.
        """
        rows: Vectors | None = None
        place = {each: row for row, each in enumerate(ids)}
        for start in range(0, len(ids), VECTORS_SLICE):
            part = list(ids[start : start + VECTORS_SLICE])
            found, vectors = self._client.ask(Collections.vectors, self._name(root_id), part)
            if len(found) < len(part):
                return None
            if not are_true(vectors):
                raise self._client.distrust(self._name(root_id))
            if rows is None:
                rows = np.empty((len(ids), vectors.shape[1]), np.float32)
            rows[[place[each] for each in found]] = vectors
        return rows

    def get(self, root_id: UUID, ids: Sequence[str]) -> dict[str, StoredMatch]:
        """Text and metadata of these records, without a distance; unknown ids are left out."""
        return self.get_each({root_id: ids})[root_id]

    def get_each(self, ids: Mapping[UUID, Sequence[str]]) -> dict[UUID, dict[str, StoredMatch]]:
        """The same for records of several roots, asked for all at once. None of a root whose
        collection fails; where all do, the failure is raised."""
        calls = {root_id: (list(of_root),) for root_id, of_root in ids.items() if of_root}
        found = self._each(Collections.get, calls)
        return {
            root_id: {i: match(i, packed, None) for i, packed in found.get(root_id, [])}
            for root_id in ids
        }

    def examine(self, root_id: UUID) -> str:
        """Why the collection of a root cannot be used; "" where it can, or is not there. Raises
        Unavailable where that cannot be told, or where the whole store is broken."""
        return self._client.examine(self._name(root_id))

    def set_aside(self, root_ids: Sequence[UUID]) -> Path | None:
        """Drop the collections of some roots, which are broken. Their index files are kept in the
        folder that is returned; None where there are none, or a server has them."""
        return self._client.set_aside([self._name(root_id) for root_id in root_ids])

    def _each(
        self, verb: Callable[..., Result], calls: Mapping[UUID, tuple[Any, ...]]
    ) -> dict[UUID, Result]:
        """What a verb answers to the call of each root, of those whose collection does not fail.
        Raises Unavailable where all do."""
        roots = {self._name(root_id): root_id for root_id in calls}
        named = [(name, *calls[root_id]) for name, root_id in roots.items()]
        if not named:
            return {}
        with ingest_throttle.foreground_call():
            found = self._client.each(verb, named)
        return {roots[name]: answer for name, answer in found.items()}

    def records(self, root_id: UUID) -> Iterator[StoredMatch]:
        """Every record that is there at the call and still there when its turn comes."""
        names = sorted(self.ids(root_id))
        for start in range(0, len(names), RECORDS_SLICE):
            yield from self.get(root_id, names[start : start + RECORDS_SLICE]).values()

    def audit(
        self, root_id: UUID, ids: Sequence[str]
    ) -> tuple[dict[str, StoredMatch], list[str], Vectors]:
        """Text and metadata of these records, and those that have a vector with it, one a row. Not
        asked as a question, as nobody waits for it."""
        name, wanted = self._name(root_id), list(ids)
        found = self._client.ask(Collections.get, name, wanted)
        named, vectors = self._client.ask(Collections.vectors, name, wanted)
        return {each: match(each, packed, None) for each, packed in found}, named, vectors

    def each_id(self, root_id: UUID) -> Iterator[str]:
        """Every id, read page by page."""
        name = self._name(root_id)
        return pages(
            lambda limit, offset: self._client.ask(Collections.ids, name, limit, offset),
            READ_SLICE,
        )

    def delete_ids(self, root_id: UUID, ids: Sequence[str]) -> None:
        """Delete these records."""
        for start in range(0, len(ids), RECORDS_SLICE):
            part = list(ids[start : start + RECORDS_SLICE])
            self._client.ask(Collections.delete, self._name(root_id), part)

    def delete_run(self, root_id: UUID, run_id: UUID | str, check: Check = never_cancelled) -> int:
        """Delete what a run wrote; how many there were. `check` is called between slices: a
        hundred thousand rows take minutes."""
        return self._delete(root_id, {"runId": str(run_id)}, check)

    def delete_files(
        self, root_id: UUID, source_file_ids: Sequence[UUID | str], check: Check = never_cancelled
    ) -> int:
        """Delete the chunks of some files; how many there were."""
        names = [str(each) for each in source_file_ids]
        groups = [names[start : start + 1_000] for start in range(0, len(names), 1_000)]
        return sum(self._delete(root_id, {"sourceFile": {"$in": group}}, check) for group in groups)

    def ids(self, root_id: UUID) -> set[str]:
        return set(self.each_id(root_id))

    def count(self, root_id: UUID) -> int:
        return self._client.ask(Collections.count, self._name(root_id))

    def drop(self, root_id: UUID, check: Check = never_cancelled) -> None:
        """Delete all of a root, and its index files."""
        name = self._name(root_id)
        # A collection that is broken cannot be counted. It can be dropped all the same.
        with suppress(Unavailable):
            while self.count(root_id) > MOST_DROPPED:
                check()
                ids = self._client.ask(Collections.ids, name, DROP_SLICE)
                self._client.ask(Collections.delete, name, ids)
        self._client.ask(Collections.drop, name)
        self.sweep()

    def sweep(self) -> list[str]:
        """Remove index files of dropped collections (embedded only); also for the start."""
        return self._client.ask(Collections.sweep)

    def paused(self) -> AbstractContextManager[Path | None]:
        """The folder of an embedded Chroma, in which nothing happens until the block ends, so that
        it may be copied; None for a server. Calls wait meanwhile."""
        return self._client.paused()

    def collections(self) -> set[UUID]:
        """The roots that have a collection."""
        return set(self.descriptions())

    def descriptions(self) -> dict[UUID, dict[str, Any]]:
        """What each root's collection says of itself (see `_about`); one of an earlier version
        says less."""
        start = f"{self._prefix}_"
        found = self._client.ask(Collections.described).items()
        ours = {name.removeprefix(start): about for name, about in found if name.startswith(start)}
        return {UUID(rest): about for rest, about in ours.items() if _is_hex(rest)}

    def origins(self) -> dict[UUID, Origin | None]:
        """Whose each root's collection is; None where it does not say."""
        return {root_id: origin_in(about) for root_id, about in self.descriptions().items()}

    def origin(self, root_id: UUID) -> Origin | None:
        """Whose the collection of a root is; None where there is none, or it does not say."""
        about = self._client.ask(Collections.description, self._name(root_id))
        return origin_in(about) if about else None

    def set_origin(self, root_id: UUID, origin: Origin) -> None:
        """Write into a root's collection whose it is, if there is one."""
        self._client.ask(Collections.describe, self._name(root_id), origin._asdict())

    def folder_of(self, root_id: UUID) -> str:
        """The folder that one of a root's records names; empty where there is none."""
        name = self._name(root_id)
        ids = self._client.ask(Collections.ids, name, 1)
        found = self._client.ask(Collections.get, name, ids) if ids else []
        return next((match(*row, None).facts.root for row in found), "")

    def close(self) -> None:
        """Let go of Chroma's files or connections."""
        self._client.close()

    def _name(self, root_id: UUID) -> str:
        return f"{self._prefix}_{root_id.hex}"

    def _delete(self, root_id: UUID, where: Mapping[str, Any], check: Check) -> int:
        name, deleted = self._name(root_id), 0
        # To ask anew for every slice took a third of the time.
        while ids := self._client.ask(Collections.ids, name, READ_SLICE, where=where):
            for part in ingest_throttle.write_slices(len(ids)):
                check()
                self._client.ask(Collections.delete, name, ids[part])
            deleted += len(ids)
        return deleted


def _is_hex(text: str) -> bool:
    return len(text) == 32 and all(character in "0123456789abcdef" for character in text)


_store: VectorStore | None = None
_lock: chroma.FolderLock | None = None
_opening = threading.RLock()


def get_store() -> VectorStore:
    """The store of this process: the server at CHROMA_URL, else the one in the data folder.

    Raises Unavailable(CHROMA_UNAVAILABLE) where another process has that folder, or no server
    answers, and (CHROMA_BROKEN) where what is in the folder cannot be used.
    """
    global _store
    with _opening:
        if _store is None:
            claim_store()
            try:
                _store = _open()
            except Unavailable:
                failed.set()
                raise
        return _store


def is_open() -> bool:
    """Whether this process has opened the store, so that asking it costs no more than a call."""
    return _store is not None


def claim_store() -> None:
    """Take the embedded store's folder for this process, without the second that opening costs.

    For the start, which must fail where another process has it: raises Unavailable, not retryable,
    naming CHROMA_URL. Nothing to do where a server is used.
    """
    global _lock
    with _opening:
        if _lock is not None and not _lock.holds():
            _lock.close()
            _lock = None
        if _lock is None and not config().chroma_url:
            _lock = chroma.FolderLock(_folder())


def _folder() -> Path:
    return config().data_dir.absolute() / "chroma"


def _open() -> VectorStore:
    url, prefix = config().chroma_url, config().ingest_collection
    client = Collections(chroma.open_server(url)) if url else Embedded(_folder())
    return VectorStore(client, prefix)


def set_store_aside() -> Path | None:
    """Move all of the embedded store away, for it is broken; the next `get_store` opens a new one.
    Where to, or None where nothing was left. Raises Unavailable where another process has it."""
    global _store
    if config().chroma_url:
        raise chroma.unavailable("The files of a Chroma server are its own", retryable=False)
    with _opening:
        if _store is not None:
            _store.close()
            _store = None
        claim_store()
        return aside.set_store_aside(_folder())


def reset_store() -> None:
    """Close the store and let go of its folder; the next `get_store` reads the settings."""
    global _store, _lock
    with _opening:
        if _store is not None:
            _store.close()
        if _lock is not None:
            _lock.close()
        _store = _lock = None
