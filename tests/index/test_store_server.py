"""The same store on a Chroma server, and one that is not there."""

import gc
import socket
from collections.abc import Callable, Iterator
from uuid import uuid4

import numpy as np
import pytest

from apps.core.errors import Unavailable
from apps.embedding.static import MODEL_ID
from apps.index.vectors.chroma import open_server
from apps.index.vectors.collections import Collections
from apps.index.vectors.store import VectorStore, get_store, reset_store
from tests.support.index import Server

pytestmark = pytest.mark.door

Turn = Callable[..., None]
PREFIX = "ingest_vectors"


@pytest.fixture(autouse=True)
def own_store() -> Iterator[None]:
    reset_store()
    yield
    reset_store()


def test_a_server_keeps_finds_and_deletes(server: Server, configure: Turn) -> None:
    configure(chroma_url=server.url)
    store, root = get_store(), uuid4()
    ids = [f"größe:{n}" for n in range(1_100)]
    vectors = np.random.default_rng(3).standard_normal((1_100, 8)).astype(np.float32)
    vectors[1] = 0
    assert store.add(root, "openai:small", ids, vectors) == ["größe:1"]
    assert store.nearest(root, vectors[7] * 9, 3)[0] == ("größe:7", pytest.approx(0, abs=1e-5))
    assert store.collections() == {root}
    store.delete(root, ids[1:])
    assert store.ids(root) == {"größe:0"}
    store.drop(root)
    assert store.collections() == set()
    assert store.nearest(root, vectors[0], 3) == []


def test_a_collection_that_another_process_dropped_is_created_again(
    server: Server, configure: Turn
) -> None:
    def fill(count: int) -> None:
        ids = [f"r:{n}" for n in range(count)]
        store.add(root, MODEL_ID, ids, np.ones((count, 8), np.float32))

    configure(chroma_url=server.url)
    store, other, root = (
        get_store(),
        VectorStore(Collections(open_server(server.url)), PREFIX),
        uuid4(),
    )
    fill(3)
    other.drop(root)
    assert store.nearest(root, np.ones(8, np.float32), 3) == []
    fill(2)
    assert store.count(root) == other.count(root) == 2
    other.drop(root)
    fill(4)
    assert other.count(root) == 4
    other.close()


def test_no_connection_outlives_the_store(server: Server, configure: Turn) -> None:
    def connected() -> int:
        # By its type: to ask some objects for their class is to wake them.
        sockets = [each for each in gc.get_objects() if issubclass(type(each), socket.socket)]
        return sum(map(to_the_server, sockets))

    def to_the_server(each: socket.socket) -> bool:
        try:
            return server.url.endswith(f":{each.getpeername()[1]}")
        except (OSError, IndexError):  # closed, not connected, or of another kind
            return False

    configure(chroma_url=server.url)
    assert get_store().collections() == set()
    assert connected() == 1
    reset_store()
    assert connected() == 0


@pytest.mark.fault("Chroma is unavailable")
def test_a_server_that_goes_away_is_an_error_of_its_own(server: Server, configure: Turn) -> None:
    configure(chroma_url=server.url)
    store = get_store()
    server.process.kill()
    server.process.wait()
    with pytest.raises(Unavailable) as caught:
        store.nearest(uuid4(), np.ones(8, np.float32), 3)
    assert (caught.value.code, caught.value.retryable) == ("CHROMA_UNAVAILABLE", True)
    reset_store()
    with pytest.raises(Unavailable) as caught:
        get_store()
    assert caught.value.code == "CHROMA_UNAVAILABLE"
