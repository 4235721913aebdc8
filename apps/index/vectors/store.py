"""The Chroma of this process: the server at CHROMA_URL, else one of its own in the data folder.

The follower writes it (`follower`), retrieval mode `vector` and other Chroma clients read it.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar
from uuid import UUID

from apps.core.config import config
from apps.core.monitoring.telemetry import span, tell
from apps.embedding.types import Vectors
from apps.index import changes
from apps.index.units import unit_rows
from apps.index.vectors import chroma
from apps.index.vectors.collections import Collections
from apps.index.vectors.embedded import Embedded
from apps.index.vectors.following import progress

P = ParamSpec("P")
Result = TypeVar("Result")


class Client(Protocol):
    """Calls verbs of Collections, in this process or in another. Thread-safe."""

    def call(
        self,
        verb: Callable[Concatenate[Collections, P], Result],
        *args: P.args,
        **none: P.kwargs,
    ) -> Result:
        """Return the result of a verb. Raises Unavailable CHROMA_UNAVAILABLE; chroma.Failed if what
        Chroma has may be broken."""

    def close(self) -> None:
        """Free memory and connections. The next call opens it again."""

    def interrupt(self) -> None:
        """End the call in progress, if that is possible."""


class Server:
    """A Chroma server."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opening = threading.Lock()
        self._collections: Collections | None = None

    @span("chroma")
    def call(
        self,
        verb: Callable[Concatenate[Collections, P], Result],
        *args: P.args,
        **none: P.kwargs,
    ) -> Result:
        tell(verb=verb.__name__)
        with self._opening:
            if self._collections is None:
                self._collections = Collections(chroma.open_server(self._url))
            collections = self._collections
        return verb(collections, *args, **none)

    def close(self) -> None:
        with self._opening:
            if self._collections is not None:
                self._collections.close()
                self._collections = None

    def interrupt(self) -> None:
        """A call ends after chroma.CALL_SECONDS."""


def folder() -> Path:
    """Where an embedded Chroma has its files, and the follower its note."""
    return config().data_dir.absolute() / "chroma"


def collection(store: UUID) -> str:
    """Return the name of the collection of a store (`Root.store`)."""
    return f"{config().ingest_collection}_{store.hex}"


def nearest(store: UUID, vector: Vectors, n: int) -> list[tuple[str, float]]:
    """Return id and distance of the n nearest, nearest first; empty for a zero vector.

    vector: float32 (dimension,), of any length; distances are 2 − 2·cos

    Raises Unavailable CHROMA_UNAVAILABLE.
    """
    units, good = unit_rows(vector.reshape(1, -1))
    if n < 1 or not good[0]:
        return []
    try:
        result = client().call(Collections.nearest, collection(store), units[0], n)
    except chroma.Failed:
        # Until it has all, it may have vectors of another model.
        progress.failed_searches += bool(progress.followed)
        changes.chroma_due.set()
        raise
    progress.failed_searches = 0
    return result


_client: Client | None = None
_choosing = threading.Lock()


def client() -> Client:
    """Return the Chroma of this process. Raises Unavailable if it is off."""
    global _client
    if config().chroma == "off":
        raise chroma.unavailable("Chroma is off: set CODEINFO_CHROMA=follow", retryable=False)
    with _choosing:
        if _client is None:
            url = config().chroma_url
            _client = Server(url) if url else Embedded(folder())
        return _client


def interrupt() -> None:
    """End the call in progress, if that is possible."""
    if _client is not None:
        _client.interrupt()


def reset_client() -> None:
    """Close it. The next `client` reads the settings again."""
    global _client
    with _choosing:
        if _client is not None:
            _client.close()
        _client = None
