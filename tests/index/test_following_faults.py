"""Chroma, its server or its folder behave badly. The index and its searches do not notice; Chroma's
state tells no more than is known, and it ends with what is published."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import InterfaceError

from apps.core.errors import Unavailable
from apps.index import changes, queries
from apps.index.mapped import lists
from apps.index.mapped.opened import opened_roots
from apps.index.models import IngestRun, Root
from apps.index.vectors import follower, sync
from apps.index.vectors.collections import Collections
from apps.index.vectors.follower import Follower, follow
from apps.index.vectors.following import following, of_stores, progress
from apps.index.vectors.process import ChromaProcess
from apps.index.vectors.store import client, nearest, reset_client
from tests.index.chroma_files import chroma_folder, ids_of, stored, turn_until_complete
from tests.support.following import server_client
from tests.support.index import Server
from tests.support.ingested import ingest, write_files
from tests.support.parts import spoil_part
from tests.support.waiting import PATIENCE

__all__ = ["chroma_folder"]
pytestmark = [pytest.mark.django_db, pytest.mark.door]

Configure = Callable[..., None]


# --- parts that are lost --------------------------------------------------------------------------


def test_what_is_lost_of_the_index_is_followed_when_it_is_back(repo: Path) -> None:
    root = ingest(repo)
    path = lists.folder() / f"{root.parts[0]['name']}.part"
    away = path.rename(path.with_suffix(".away"))
    opened_roots.keep_only([])
    one = Follower()
    one.turn()
    assert following()[:3] == ("failed", 0, root.embedded)
    assert "Parts of the index cannot be read" in following().reason
    away.rename(path)
    assert turn_until_complete(one) == ["complete"]
    assert sorted(stored()) == ids_of(root)


def test_a_part_that_is_spoilt_does_not_end_the_thread(repo: Path) -> None:
    root = ingest(repo)
    opened_roots.keep_only([])
    spoil_part(root)
    assert Follower().turn() > 0


# --- files that hnswlib has written of a damaged one ---------------------------------------------


def test_links_that_fill_the_disk_are_deleted_with_all_of_chroma(
    repo: Path, chroma_folder: Path
) -> None:
    root = ingest(repo)
    one = Follower()
    turn_until_complete(one)
    folder = chroma_folder / "2ee1aebf-996b-477c-97c0-d16b7d3ed674"
    write_files(folder, {"data_level0.bin": "vectors", "link_lists.bin": "links of " * 9})
    changes.roots_changed()
    assert turn_until_complete(one) == ["complete"]
    assert not folder.exists()
    assert sorted(stored()) == ids_of(root)


# --- the thread -----------------------------------------------------------------------------------


def test_it_stops_although_something_is_published_meanwhile(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`stop` comes between the end of a wait and the next attempt."""
    at_wait, go_on = threading.Event(), threading.Event()

    class Due(threading.Event):
        def clear(self) -> None:
            at_wait.set()
            go_on.wait(PATIENCE)
            super().clear()

    due = Due()
    due.set()
    monkeypatch.setattr(changes, "chroma_due", due)
    monkeypatch.setattr(Follower, "turn", lambda self: 1.0)
    one = Follower()
    one.start()
    assert at_wait.wait(PATIENCE)
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "chroma"]
    stopping = threading.Thread(target=one.stop, daemon=True)
    stopping.start()
    while not due.is_set():
        pass
    go_on.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_lost_connection_to_the_database_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed() -> list[Root]:
        raise InterfaceError("connection already closed")

    monkeypatch.setattr(queries, "published_roots", closed)
    assert Follower().turn() == follower.POLL_SECONDS


def test_after_a_failure_it_waits_whatever_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []
    third = threading.Event()

    def failing(self: Follower) -> float:
        self.retries += 1
        turns.append(len(turns))
        changes.chroma_due.set()
        if len(turns) > 2:
            third.set()
        return 0.05 if len(turns) < 2 else 1_000

    monkeypatch.setattr(follower, "FIRST_SECONDS", 0)
    monkeypatch.setattr(Follower, "turn", failing)
    one = Follower()
    one.start()
    try:
        assert not third.wait(1)
    finally:
        one.stop()


# --- what is proved -------------------------------------------------------------------------------


def test_while_runs_follow_each_other_it_is_not_complete(repo: Path) -> None:
    root = ingest(repo)
    one = Follower()
    one.turn()
    assert following().state == "complete"
    write_files(repo, {"new.py": "def sail(wind):\n    return wind\n"})
    published = ingest(repo)
    IngestRun.objects.create(
        path="/elsewhere", name="other", model=root.model, operation="start", state="embedding"
    )
    one.turn()  # gives way
    assert following().state == "following"
    n, m = of_stores()[published.store]
    assert n < m


def test_rows_that_chroma_has_lost_are_noticed(repo: Path) -> None:
    """As after a loss of power, or by another client."""
    root = ingest(repo)
    follow()
    name = f"ingest_vectors_{root.store.hex}"
    client().call(Collections.delete, name, ids_of(root)[:2])
    write_files(repo, {"new.py": "x = 1\n"})
    root = ingest(repo)
    states = turn_until_complete(Follower())
    assert states[0] != "complete"
    assert sorted(stored()) == ids_of(root)


def test_a_lost_shard_is_noticed(
    repo: Path, chroma_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "SLICE", 2)
    monkeypatch.setattr(sync, "SHARD_ROWS", 2)
    root = ingest(repo)
    follow()
    name = f"ingest_vectors_{root.store.hex}"
    index_folders = len([*chroma_folder.glob("*-*-*-*-*")])
    client().call(Collections.drop, f"{name}.2")
    assert len([*chroma_folder.glob("*-*-*-*-*")]) == index_folders - 1
    write_files(repo, {"new.py": "x = 1\n"})
    root = ingest(repo)
    turn_until_complete(Follower())
    rows = stored()
    assert sorted(rows) == ids_of(root)
    vector = rows[ids_of(root)[0]]["vector"]
    assert sorted(key for key, _ in nearest(root.store, vector, 50)) == ids_of(root)


# --- searches meanwhile ---------------------------------------------------------------------------


def test_a_search_is_not_ended_by_a_further_shard(
    repo: Path, monkeypatch: pytest.MonkeyPatch, configure: Configure
) -> None:
    configure(retrieval_mode="vector")
    root = ingest(repo)
    follow()
    searching = threading.Event()
    errors: list[Exception] = []
    name = f"ingest_vectors_{root.store.hex}"

    def search() -> None:
        searching.set()
        for _ in range(40):
            try:
                client().call(Collections.count, name)
            except Unavailable as error:
                errors.append(error)

    thread = threading.Thread(target=search)
    thread.start()
    assert searching.wait(PATIENCE)
    for _ in range(5):
        client().close()
    thread.join()
    assert not errors


# --- a server -------------------------------------------------------------------------------------


@pytest.fixture
def on_server(server: Server, configure: Configure) -> Iterator[Server]:
    reset_client()
    configure(chroma_url=server.url)
    yield server
    reset_client()


def rows_of_server(url: str) -> list[str]:
    with server_client(url) as opened:
        return sorted(key for each in opened.list_collections() for key in each.get()["ids"])


def test_a_server_that_was_emptied_is_noticed_without_a_publication(
    repo: Path, on_server: Server
) -> None:
    root = ingest(repo)
    one = Follower()
    one.turn()
    assert following().state == "complete"
    with server_client(on_server.url) as opened:
        for each in opened.list_collections():
            opened.delete_collection(each.name)
    one.turn()
    assert rows_of_server(on_server.url) == ids_of(root)


def test_a_server_that_is_away_is_not_complete(repo: Path, on_server: Server) -> None:
    ingest(repo)
    one = Follower()
    one.turn()
    on_server.process.kill()
    on_server.process.wait()
    for new_process in (False, True):
        if new_process:
            progress.start({}, {})
            progress.end()
            one = Follower()
        one.turn()
        assert following().state == "failed"


def test_a_second_follower_of_the_same_folder_waits(
    repo: Path, on_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two servers share a data folder and a Chroma server."""
    monkeypatch.setattr(sync, "SLICE", 2)
    root = ingest(repo)
    call = ChromaProcess.call
    pauses: list[float] = []

    def calling(self: ChromaProcess, verb: Any, *args: Any) -> Any:
        if verb is Collections.add and not pauses:
            pauses.append(0.0)
            pauses[0] = Follower().turn()
        return call(self, verb, *args)

    monkeypatch.setattr(ChromaProcess, "call", calling)
    Follower().turn()
    assert pauses == [follower.BUSY_SECONDS]
    turn_until_complete(Follower())
    assert rows_of_server(on_server.url) == ids_of(root)


def test_collections_of_others_stay(repo: Path, on_server: Server) -> None:
    with server_client(on_server.url) as opened:
        opened.create_collection("ingest_vectors_theirs").add(
            ids=["1"], embeddings=[[1.0, 2.0]], metadatas=[{"a": 1}]
        )
        root = ingest(repo)
        turn_until_complete(Follower())
        follower.write_anew()
        assert rows_of_server(on_server.url) == ["1"]
        turn_until_complete(Follower())
        assert rows_of_server(on_server.url) == sorted(["1", *ids_of(root)])


def test_a_root_that_waits_for_another_model_is_left_out(repo: Path, folder: Path) -> None:
    """It has the store of roots of that model already (`shared.leave_store`)."""
    root = ingest(repo)
    other = ingest(write_files(folder / "other", {f"ship_{n}.py": f"n = {n}\n" for n in range(9)}))
    Root.objects.filter(id=other.id).update(store=root.store, model="builtin:older")
    changes.roots_changed()
    assert turn_until_complete(Follower()) == ["complete"]
    assert sorted(stored()) == ids_of(root)


@pytest.fixture
def answering() -> Iterator[Callable[[int, bytes], str]]:
    """A server that answers everything with one status and body."""
    servers: list[HTTPServer] = []

    def serve(status: int, body: bytes) -> str:
        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *args: Any) -> None:
                pass

        found = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=found.serve_forever, daemon=True).start()
        servers.append(found)
        return f"http://127.0.0.1:{found.server_address[1]}"

    yield serve
    for each in servers:
        each.shutdown()
        each.server_close()


@pytest.mark.parametrize(
    ("status", "body"),
    [(502, b"<h1>Bad gateway</h1>"), (401, b"{}"), (200, b"{}"), (200, b"[]"), (200, b"<p>"),
     (200, b"null"), (404, b"")],
)  # fmt: skip
def test_what_is_no_chroma_server_is_told(
    repo: Path, configure: Configure, answering: Callable[[int, bytes], str], status: int,
    body: bytes,
) -> None:  # fmt: skip
    root = ingest(repo)
    reset_client()
    configure(chroma_url=answering(status, body))
    one = Follower()
    assert [one.turn() for _ in range(4)] == [15, 30, 60, 120]
    assert following().state == "failed"
    with pytest.raises(Unavailable, match="Chroma"):
        nearest(root.store, np.ones(256, np.float32), 3)
    reset_client()
