"""Two serving processes on one database, one Chroma server, one Redis and one data folder."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from apps.core.config import config
from tests.browser.product import Product, running
from tests.stores.servers import stores_called
from tests.support.following import server_client
from tests.support.ingested import SAMPLE, write_files
from tests.support.served import ingest_into

PATIENCE = 60


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Product, Product]]:
    stores = stores_called("shared")
    folder = tmp_path_factory.mktemp("one")
    stores["CODEINFO_DATA_DIR"] = str(folder / "data")
    with (
        running(folder, **stores) as one,
        running(tmp_path_factory.mktemp("other"), **stores) as other,
    ):
        yield one, other


def ask(url: str, path: str, /, **body: Any) -> Any:
    answer = httpx.post(f"{url}{path}", json=body, timeout=PATIENCE)
    assert answer.is_success, answer.text
    return answer.json()


def test_changes_by_one_process_are_shown_by_the_other_at_once(
    two: tuple[Product, Product],
) -> None:
    one, other = two
    with connect(f"{other.url.replace('http', 'ws')}/ws", open_timeout=PATIENCE) as socket:
        hello = {"protocolVersion": "v1", "requestId": "r", "type": "subscribe_sidebar"}
        socket.send(json.dumps(hello))
        made: dict[str, str] = {}
        while True:
            # Nobody tells when the other end of the relay listens, so there is more than one.
            created = ask(one.url, "/conversations", provider="builtin", model="search")
            made[created["conversationId"]] = ""
            try:
                event = json.loads(socket.recv(timeout=1))
            except TimeoutError:
                continue
            if event.get("conversation", {}).get("conversationId") in made:
                break


def test_a_repository_ingested_by_one_process_is_searched_by_the_other(
    two: tuple[Product, Product],
) -> None:
    one, other = two
    repo = write_files(one.repos / "lighthouse", SAMPLE)
    ingest_into(one, repo)
    found = ask(other.url, "/tools/vector-search", query="how long to wait before a retry")
    assert found["results"][0]["relPath"] == "src/retry.py"
    question = {"provider": "builtin", "model": "search", "message": "Where is saveShip?"}
    ask(other.url, "/chat", conversationId="shared", **question)
    turns: list[Any] = []
    while len(turns) < 2:
        turns = httpx.get(f"{one.url}/conversations/shared/turns", timeout=PATIENCE).json()["items"]
    assert any("store.js" in turn["content"] for turn in turns)


def test_the_chroma_server_has_once_what_either_process_has_published(
    two: tuple[Product, Product],
) -> None:
    one, _ = two
    ingest_into(one, write_files(one.repos / "harbour", {"port.py": "def port(): ...\n"}))
    roots = httpx.get(f"{one.url}/ingest/roots", timeout=PATIENCE).json()["roots"]
    published = sorted(root["counts"]["embedded"] for root in roots)
    deadline = time.monotonic() + PATIENCE
    counts: list[int] = []
    # Both follow, each at its own time.
    with server_client(config().chroma_url) as client:
        while counts != published and time.monotonic() < deadline:
            counts = sorted(
                each.count()
                for each in client.list_collections()
                if each.name.startswith("shared_")
            )
    assert counts == published
