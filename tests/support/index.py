"""Ingests are real here: real files, the built-in embedder, the embedded store."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from apps.code.values import Chunk
from apps.embedding.static import StaticCodeEmbedder
from apps.embedding.wire import wire
from apps.index import stores
from apps.index.chunks import StoredChunk, read_chunks
from apps.index.models import Root
from apps.index.queries import live_file_ids
from apps.index.types import ChunkRecord
from apps.index.vectors.store import get_store
from tests.ports import free_ports
from tests.support.ingested import SAMPLE, write_files

Contents = dict[str, str]


@pytest.fixture(scope="module")
def wire_ends() -> Iterator[None]:
    """No thread or connection to an embedding server outlives a file's tests."""
    yield
    wire().stop()
    wire.cache_clear()


@pytest.fixture
def repo(folder: Path) -> Path:
    """The sample repository on disk, not ingested yet."""
    return write_files(folder / "lighthouse", SAMPLE)


@pytest.fixture
def store() -> Iterator[Any]:
    """The real store, empty, and so are the words: before the test and after it."""
    drop_everything()
    yield get_store()
    # The test may have closed the one it was given.
    drop_everything()


def drop_everything() -> None:
    """Other files' tests, too, may have left roots in this worker's folder."""
    for root_id in get_store().collections():
        stores.drop_vectors(root_id)


@pytest.fixture
def contents(store: Any) -> Callable[[Root], Contents]:
    """What a root answers with: `relPath:index` → chunk hash, of the chunks whose file is live.

    Two ingests of the same files have the same contents; ids differ by the run.
    """

    def read(root: Root) -> Contents:
        return {
            f"{chunk.facts.path}:{chunk.facts.chunk_index}": chunk.hash
            for chunk in read_chunks((root, each) for each in live_ids(root)).values()
        }

    return read


def live_ids(root: Root) -> list[str]:
    """The ids of the chunks in the vector store whose file is live."""
    live = live_file_ids(Root.objects.get(id=root.id))
    return [each for each in sorted(get_store().ids(root.store)) if each.rpartition(":")[0] in live]


def chunk_record(path: str = "a.py", source_file: str = "", index: int = 0) -> ChunkRecord:
    """A chunk of a file that no row tells of."""
    key = source_file or str(uuid4())
    chunk = Chunk("text", 1, 1)
    return ChunkRecord(f"{key}:{index}", key, str(uuid4()), path, "python", "0" * 64, index, chunk)


def chunks_of(root: Root) -> list[StoredChunk]:
    """Every chunk with a vector, live or not."""
    ids = sorted(get_store().ids(root.store))
    return list(read_chunks((root, each) for each in ids).values())


_embed = StaticCodeEmbedder.embed_documents


def first_is_zero(self: StaticCodeEmbedder, texts: Any) -> Any:
    """Instead of the embedder's own: the first text gets a vector without a direction."""
    vectors = _embed(self, texts)
    vectors[0] = 0
    return vectors


@dataclass(frozen=True)
class Server:
    url: str
    process: subprocess.Popen[bytes]


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    """Chroma's own server, as `CHROMA_URL` would name it."""
    port = free_ports()
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(
        [Path(sys.executable).with_name("chroma"), "run", "--path", folder, "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        # It is tried until it listens, after pauses that grow to a minute in all.
        with httpx.Client(transport=httpx.HTTPTransport(retries=8)) as client:
            client.get(f"{url}/api/v2/heartbeat").raise_for_status()
        yield Server(url, process)
        process.kill()
