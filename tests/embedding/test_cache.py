"""Vectors of an embedding server are cached, and no text is sent twice."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from apps.core.data import sqlite_files
from apps.embedding.cache import PROBE, VectorCache
from apps.embedding.catalogue import get_embedder
from apps.embedding.types import EmbeddingText
from tests.stand_ins.embeddings_server import EmbeddingsServer, vector_of
from tests.support.ingested import SAMPLE, run_ingest, write_files

pytestmark = [pytest.mark.usefixtures("wire_ends"), pytest.mark.door]
MODEL = "openai:text-embedding-small"
FILE = "embedded.sqlite3"
KEPT = 40  # vectors of a file that is written until it is full


@pytest.fixture
def server(configure: Callable[..., None], tmp_path: Path) -> Iterator[EmbeddingsServer]:
    """An embedding server, and a cache that nobody has used."""
    (tmp_path / "data").mkdir()
    with EmbeddingsServer() as running:
        configure(embedding_base_url=running.url, embedding_cache_mb=1, data_dir=tmp_path / "data")
        yield running


def embed(*bodies: str) -> list[list[float]]:
    """The vectors that a run gets."""
    texts = [EmbeddingText(body, path="a.py") for body in bodies]
    vectors = get_embedder(MODEL).embed_documents(texts)
    assert vectors.dtype == np.float32
    rows: list[list[float]] = vectors.tolist()
    return rows


def new_bodies(server: EmbeddingsServer) -> list[str]:
    """The texts that the server received since the last call, sorted."""
    texts = [text for text in chain(*server.texts()) if text != PROBE.joined()]
    server.requests.clear()
    return sorted(text.partition("\n")[2] for text in texts)


def right(*bodies: str) -> list[list[float]]:
    return [vector_of(f"a.py\n{body}") for body in bodies]


def test_only_new_texts_are_sent_and_each_gets_its_vector(
    server: EmbeddingsServer,
) -> None:
    assert embed("one", "two", "three") == right("one", "two", "three")
    assert new_bodies(server) == ["one", "three", "two"]
    assert embed("two", "four", "one", "five") == right("two", "four", "one", "five")
    assert new_bodies(server) == ["five", "four"]
    assert embed("five", "one") == right("five", "one")
    assert new_bodies(server) == []


def test_a_repeated_text_gets_its_vector_in_both_places(server: EmbeddingsServer) -> None:
    assert embed("one", "two", "one") == right("one", "two", "one")
    assert embed("one", "one") == right("one", "one")


def test_no_texts_are_not_sent(server: EmbeddingsServer) -> None:
    assert embed() == []


def test_a_text_at_another_path_is_another_text(server: EmbeddingsServer) -> None:
    embed("one")
    get_embedder(MODEL).embed_documents([EmbeddingText("one", path="b.py")])
    assert new_bodies(server) == ["one", "one"]


def test_models_do_not_share_vectors(server: EmbeddingsServer) -> None:
    embed("one")
    get_embedder("openai:other").embed_documents([EmbeddingText("one", path="a.py")])
    assert new_bodies(server) == ["one", "one"]


@pytest.mark.fault("Another embedding model")
@pytest.mark.parametrize("numbers", [8, 5])
def test_a_changed_model_of_the_same_name_clears_the_cache(
    server: EmbeddingsServer, numbers: int
) -> None:
    embed("one", "two")
    new_bodies(server)
    server.vector_of = lambda text: vector_of(text[::-1] + "\0" * 99)[:numbers]
    other = [server.vector_of(f"a.py\n{body}") for body in ("one", "two", "three")]
    assert embed("one", "two", "three") == other
    assert new_bodies(server) == ["one", "three", "two"]
    assert embed("one", "two") == other[:2]
    assert new_bodies(server) == []


def test_rounding_does_not_clear_the_cache(server: EmbeddingsServer) -> None:
    first = embed("one")
    server.vector_of = lambda text: [number + 1e-6 for number in vector_of(text)]
    assert embed("one") == first


def test_a_second_checkout_is_not_embedded_again(
    server: EmbeddingsServer, tmp_path: Path, db: None
) -> None:
    first = run_ingest(write_files(tmp_path / "here", SAMPLE), model=MODEL)
    assert first.state == "completed" and len(new_bodies(server)) == first.embedded > 0
    second = run_ingest(write_files(tmp_path / "there", SAMPLE), model=MODEL)
    assert (second.state, second.embedded) == ("completed", first.embedded)
    assert new_bodies(server) == []


def test_a_broken_file_is_replaced(server: EmbeddingsServer, tmp_path: Path) -> None:
    (tmp_path / "data" / FILE).write_bytes(b"not a database, whatever its name says" * 99)
    assert embed("one") == right("one")
    assert embed("one", "two") == right("one", "two")
    new_bodies(server)
    assert embed("one", "two") == right("one", "two")
    assert new_bodies(server) == []


@pytest.mark.fault("The disk is full")
def test_a_failed_write_does_not_fail_the_call(
    server: EmbeddingsServer, tmp_path: Path, configure: Callable[..., None]
) -> None:
    (tmp_path / "file").touch()
    configure(data_dir=tmp_path / "file" / "below")
    assert embed("one") == embed("one") == right("one")
    assert new_bodies(server) == ["one", "one"]


def test_a_locked_file_delays_a_call_only_briefly(
    server: EmbeddingsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed("one")
    monkeypatch.setattr(sqlite_files, "BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(tmp_path / "data" / FILE, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert embed("one", "two") == right("one", "two")
        other.execute("ROLLBACK")


def test_a_limit_of_zero_disables_the_cache(
    server: EmbeddingsServer, tmp_path: Path, configure: Callable[..., None]
) -> None:
    configure(embedding_cache_mb=0)
    assert embed("one") == embed("one")
    assert new_bodies(server) == ["one", "one"]
    assert not (tmp_path / "data" / FILE).exists()


def test_a_full_file_loses_the_least_recently_used_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = 1
    monkeypatch.setattr("apps.embedding.cache.today", lambda: day)
    vectors = np.ones((1, 1024), np.float32)  # a page each
    cache = VectorCache(tmp_path / "data" / FILE, "model", KEPT * 4096 * 2)
    for day in range(1, KEPT * 4):
        cache.write([f"text {day}"], vectors)
        assert cache.read(["text 1"]).keys() == {0}
    last = [f"text {number}" for number in range(KEPT * 4 - KEPT // 2, KEPT * 4)]
    assert len(cache.read(last)) == len(last)
    assert cache.read([f"text {number}" for number in range(2, KEPT)]) == {}
    assert (tmp_path / "data" / FILE).stat().st_size < KEPT * 4096 * 2.5
