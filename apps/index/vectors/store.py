"""The Chroma of this process: the server at CHROMA_URL, else an embedded one in the data folder.

The follower writes it (`follower`), retrieval mode `vector` and other Chroma clients read it.
"""

from pathlib import Path
from uuid import UUID

from apps.core.concurrency.per_process import PerProcess
from apps.core.config import config
from apps.embedding.types import Vectors
from apps.index import changes
from apps.index.units import unit_rows
from apps.index.vectors import chroma
from apps.index.vectors.collections import Collections
from apps.index.vectors.following import progress
from apps.index.vectors.process import ChromaProcess


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
        progress.failed_searches += bool(progress.state.followed)
        changes.chroma_due.set()
        raise
    progress.failed_searches = 0
    return result


_client = PerProcess(lambda: ChromaProcess(folder(), config().chroma_url))
# Close the Chroma of this process. The next `client` reads the settings again.
reset_client = _client.reset


def client() -> ChromaProcess:
    """Return the Chroma of this process. Raises Unavailable if it is off."""
    if config().chroma == "off":
        raise chroma.unavailable("Chroma is off: set CODEINFO_CHROMA=follow", retryable=False)
    return _client.get()


def interrupt() -> None:
    """End the call in progress."""
    if _client.created is not None:
        _client.created.interrupt()
