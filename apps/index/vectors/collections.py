"""What is done to the collections of one Chroma: plain values in, plain values out.

The values go through a pipe where Chroma is embedded, so vectors are arrays and the rest is text,
numbers and lists. A collection that is not there is no error: it holds nothing.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from apps.core.errors import Unavailable
from apps.core.telemetry import span, tell
from apps.embedding.types import Vectors
from apps.index.vectors import chroma

P = ParamSpec("P")
Result = TypeVar("Result")
Facts = Mapping[str, Any]

SPACE = "l2"
# A wider search than Chroma's 100 finds .99 of the true ten best among 20,000, not .97. What waits
# to be written to its files makes every call slower, so it writes at 400 rows, not at 1,000.
INDEX = {"space": SPACE, "ef_search": 200, "sync_threshold": 400}
NAMES_PAGE = 500
# Questions to several collections at once: Chroma lets go of Python's lock while it looks.
ASKERS = 4


class Collections:
    """The verbs, on a chromadb client. Errors: Unavailable(CHROMA_UNAVAILABLE)."""

    def __init__(self, client: Any, folder: Path | None = None) -> None:
        """`folder` is where an embedded Chroma keeps its files; None for a server."""
        self._client = client
        self._folder = folder
        self._lock = threading.Lock()
        self._known: dict[str, Any] = {}
        self._askers = ThreadPoolExecutor(ASKERS, thread_name_prefix="chroma-ask")

    @span("chroma")
    def ask(
        self,
        verb: Callable[Concatenate["Collections", P], Result],
        *args: P.args,
        **options: P.kwargs,
    ) -> Result:
        """Do one verb here, as `process.Embedded` has it done elsewhere."""
        tell(verb=verb.__name__)
        return verb(self, *args, **options)

    def each(
        self, verb: Callable[..., Result], calls: Sequence[tuple[Any, ...]]
    ) -> list[tuple[bool, Result | Unavailable]]:
        """What a verb that reads answers to each of some calls, in one go: (True, answer), or
        (False, error) where it fails. Raises Unavailable CHROMA_CRASHED where any of them crashes
        Chroma, since the others cannot be relied on then."""

        def one(call: tuple[Any, ...]) -> tuple[bool, Result | Unavailable]:
            try:
                return True, verb(self, *call)
            except Unavailable as error:
                if error.code == chroma.CRASHED:
                    raise
                return False, error

        if len(calls) < 2:
            return [one(call) for call in calls]
        return list(self._askers.map(one, calls))

    def add(
        self, name: str, about: Facts, ids: Sequence[str], vectors: Vectors, facts: Sequence[Facts]
    ) -> None:
        """Rows that are not there yet, in a collection that is made where there is none."""
        self._in(
            name,
            lambda found: found.add(ids=ids, embeddings=vectors, metadatas=facts),
            create=lambda: self._create(name, about),
        )

    def query(self, name: str, vector: Vectors, n: int) -> list[tuple[str, Facts, float]]:
        """Id, facts and distance of the n nearest, nearest first."""
        wanted = ["metadatas", "distances"]
        found = self._in(name, lambda it: it.query([vector], n_results=n, include=wanted))
        if found is None:
            return []
        rows = (found["ids"][0], found["metadatas"][0], found["distances"][0])
        return list(zip(*rows, strict=True))

    def nearest(self, name: str, vector: Vectors, n: int) -> list[tuple[str, float]]:
        """Id and distance of the n nearest, nearest first."""
        found = self._in(name, lambda it: it.query([vector], n_results=n, include=["distances"]))
        return list(zip(found["ids"][0], found["distances"][0], strict=True)) if found else []

    def distances(self, name: str, vector: Vectors, ids: Sequence[str]) -> dict[str, float]:
        """The squared distance of each of these rows."""
        # Chroma's own query among given ids takes ten times as long.
        found, vectors = self.vectors(name, ids)
        return dict(zip(found, squares(vectors, vector).tolist(), strict=True)) if found else {}

    def vectors(self, name: str, ids: Sequence[str]) -> tuple[list[str], Vectors]:
        """Those of these rows that are there, in no order, and their vectors, one a row."""
        found = self._in(name, lambda it: it.get(ids=ids, include=["embeddings"]))
        if not found or not found["ids"]:
            return [], np.zeros((0, 0), np.float32)
        return list(found["ids"]), np.asarray(found["embeddings"], np.float32)

    def get(self, name: str, ids: Sequence[str]) -> list[tuple[str, Facts]]:
        """Id and facts of these rows, in no order."""
        found = self._in(name, lambda it: it.get(ids=ids, include=["metadatas"]))
        return list(zip(found["ids"], found["metadatas"], strict=True)) if found else []

    def ids(self, name: str, limit: int, offset: int = 0, where: Any = None) -> list[str]:
        """A page of the ids of the rows whose facts are so."""
        found = self._in(
            name, lambda it: it.get(where=where, limit=limit, offset=offset, include=[])
        )
        return list(found["ids"]) if found else []

    def delete(self, name: str, ids: Sequence[str]) -> None:
        self._in(name, lambda found: found.delete(ids=ids))

    def count(self, name: str) -> int:
        return self._in(name, lambda found: int(found.count())) or 0

    def names(self) -> list[str]:
        """The names of all collections."""
        return list(self.described())

    def described(self) -> dict[str, dict[str, Any]]:
        """What each collection says of itself, by its name."""
        with chroma.chroma_errors():
            found = pages(self._client.list_collections, NAMES_PAGE)
            return {each.name: dict(each.metadata or {}) for each in found}

    def description(self, name: str) -> dict[str, Any] | None:
        """What one collection says of itself now, whatever another process changed; None where
        there is none."""
        try:
            with chroma.chroma_errors():
                return dict(self._find(name).metadata or {})
        except Unavailable as error:
            if chroma.is_missing(error):
                return None
            raise

    def describe(self, name: str, facts: Facts) -> None:
        """Let a collection say this of itself, beside what it says."""
        known = self.description(name)
        if known is not None:
            self._in(name, lambda found: found.modify(metadata={**known, **facts}))

    def drop(self, name: str) -> None:
        """Delete a collection."""
        with self._lock:
            self._known.pop(name, None)
        if self._folder:
            chroma.note_dropped(self._folder, name)
        try:
            with chroma.chroma_errors():
                self._client.delete_collection(name)
        except Unavailable as error:
            if not chroma.is_missing(error):
                raise

    def renew(self) -> None:
        """A server is nobody's child."""

    def judge(self, names: Sequence[str], error: Unavailable) -> None:
        """A server's files are its own."""

    def set_aside(self, names: Sequence[str]) -> Path | None:
        """A server's files are its own."""
        return None

    def sweep(self) -> list[str]:
        """Remove index files of collections that were dropped here; their names. A server sees to
        its own."""
        return chroma.sweep(self._folder) if self._folder else []

    @contextmanager
    def paused(self) -> Iterator[Path | None]:
        """As of `process.Embedded`; a server's folder is not ours to see."""
        yield None

    def close(self) -> None:
        """Let go of Chroma's files or connections."""
        self._askers.shutdown()
        self._client.close()

    def _in(
        self,
        name: str,
        work: Callable[[Any], Result],
        create: Callable[[], Any] | None = None,
    ) -> Result | None:
        """Do work on a collection; None where there is none and none is to be made.

        A handle is kept between calls. Where the collection behind it is gone, since another
        process may have dropped it, it is looked up, or made, once more.
        """
        for last in (False, True):
            try:
                with chroma.chroma_errors():
                    return work(self._collection(name, create))
            except Unavailable as error:
                if not chroma.is_missing(error):
                    raise
                with self._lock:
                    known = self._known.pop(name, None)
                if last or not (known or create):
                    return None
        return None

    def _collection(self, name: str, create: Callable[[], Any] | None) -> Any:
        with self._lock:
            if name not in self._known:
                self._known[name] = create() if create else self._find(name)
            return self._known[name]

    def _find(self, name: str) -> Any:
        return self._client.get_collection(name, embedding_function=None)

    def _create(self, name: str, about: Facts) -> Any:
        return self._client.get_or_create_collection(
            name, embedding_function=None, configuration={"hnsw": INDEX}, metadata=dict(about)
        )


def squares(vectors: Vectors, vector: Vectors) -> Vectors:
    """The squared distance of each of some vectors, one a row, from another."""
    between = vectors - vector
    found: Vectors = np.einsum("ij,ij->i", between, between)
    return found


class _Page(Protocol):
    def __call__(self, limit: int, offset: int) -> Sequence[Any]: ...


def pages(read: _Page, size: int) -> Iterator[Any]:
    """All items of a listing that comes in pages."""
    offset = 0
    while page := read(limit=size, offset=offset):
        yield from page
        offset += len(page)
