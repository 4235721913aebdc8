"""Ingests are real here: real files, the built-in embedder, real parts."""

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
from apps.index.chunks import StoredChunk, read_chunks
from apps.index.models import Root
from apps.index.types import ChunkRecord
from tests.ports import free_ports
from tests.support.ingested import SAMPLE, write_files
from tests.support.parts import chunk_ids, clear_index
from tests.support.waiting import PATIENCE

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
def index() -> Iterator[None]:
    """No parts: before the test and after it."""
    clear_index()
    yield
    clear_index()


@pytest.fixture
def contents(index: None) -> Callable[[Root], Contents]:
    """What a root answers with: `relPath:index` → chunk hash, of the chunks whose file is live.

    Two ingests of the same files have the same contents; ids differ by the run.
    """

    def read(root: Root) -> Contents:
        return {
            f"{chunk.facts.path}:{chunk.facts.chunk_index}": chunk.hash
            for chunk in read_chunks((root, key) for key in chunk_ids(root)).values()
        }

    return read


def chunk_record(path: str = "a.py", source_file: str = "", index: int = 0) -> ChunkRecord:
    """A chunk of a file that no row tells of."""
    key = source_file or str(uuid4())
    chunk = Chunk("text", 1, 1)
    return ChunkRecord(f"{key}:{index}", key, str(uuid4()), path, "python", "0" * 64, index, chunk)


def chunks_of(root: Root) -> list[StoredChunk]:
    """Every chunk in the parts of a root, live or not."""
    return list(read_chunks((root, key) for key in chunk_ids(root, live=False)).values())


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
        with httpx.Client(transport=httpx.HTTPTransport(retries=8), timeout=PATIENCE) as client:
            client.get(f"{url}/api/v2/heartbeat").raise_for_status()
        yield Server(url, process)
        process.kill()
