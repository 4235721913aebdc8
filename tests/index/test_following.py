"""Chroma follows what is published, in a process of its own. Read as other Chroma clients do."""

import itertools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.test import Client

from apps.core.system import disk, posix
from apps.index import queries
from apps.index.mapped import lists
from apps.index.models import IngestRun, Root
from apps.index.vectors import chroma, sync
from apps.index.vectors.follower import Follower, follow
from apps.index.vectors.following import fingerprint, following, of_stores, progress
from apps.index.vectors.process import DATABASE, LOCK, ChromaProcess
from apps.index.vectors.store import client, folder, nearest, reset_client
from apps.ingest import services
from apps.ingest.runs import merging, queue
from tests.index.chroma_files import chroma_folder, ids_of, stored, turn_until_complete
from tests.ingest.embeddings import OTHER, embeddings
from tests.stand_ins.embeddings_server import DIMENSION
from tests.support.ingested import SAMPLE, ingest, write_files
from tests.support.parts import chunk_ids

__all__ = ["chroma_folder", "embeddings"]
pytestmark = [pytest.mark.django_db, pytest.mark.door]

Configure = Callable[..., None]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of all rows that are added, as they are added."""
    ids: list[str] = []
    call = ChromaProcess.call

    def noting(self: ChromaProcess, verb: Any, *args: Any, **none: Any) -> Any:
        if verb.__name__ == "add":
            ids.extend(args[1])
        return call(self, verb, *args, **none)

    monkeypatch.setattr(ChromaProcess, "call", noting)
    return ids


def test_it_has_every_published_vector_with_its_place(repo: Path) -> None:
    root = ingest(repo)
    follow()
    assert of_stores()[root.store] == (root.embedded, root.embedded)
    assert following() == ("complete", root.embedded, root.embedded, "")
    rows = stored()
    assert sorted(rows) == ids_of(root)
    assert {row["shard"] for row in rows.values()} == {f"ingest_vectors_{root.store.hex}"}
    retry = [row for row in rows.values() if row["relPath"] == "src/retry.py"]
    file = root.sourcefile_set.get(path="src/retry.py")
    assert {row["fileHash"] for row in retry} == {file.sha256}
    lines = (repo / "src/retry.py").read_text().splitlines()
    assert all(1 <= row["startLine"] <= row["endLine"] <= len(lines) for row in retry)
    lengths = [np.linalg.norm(row["vector"]) for row in rows.values()]
    assert lengths == pytest.approx([1] * len(rows), abs=1e-5)


def test_of_a_change_it_gets_the_difference(repo: Path, written: list[str]) -> None:
    ingest(repo)
    follow()
    before = {*written}
    write_files(repo, {"new.py": "def sail(wind):\n    return wind\n"})
    (repo / "main.txt").unlink()
    root = ingest(repo)
    follow()
    assert {*written} - before == {*chunk_ids(root)} - before
    assert len(written) == len({*written})
    assert sorted(stored()) == ids_of(root)


def test_it_is_not_opened_if_nothing_was_published(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)
    follow()
    write_files(repo, {"new.py": "x = 1\n"})
    root = ingest(repo)
    follow()
    merging.merge(root.path)
    monkeypatch.setattr(ChromaProcess, "call", lambda *args: pytest.fail("it was opened"))
    progress.end()
    follow()
    assert following().state == "complete"


def test_what_a_killed_follower_leaves_is_completed(
    repo: Path, monkeypatch: pytest.MonkeyPatch, chroma_folder: Path
) -> None:
    """It is killed at each write in turn, before and after the write."""
    monkeypatch.setattr(sync, "SLICE", 2)
    write_files(repo, {f"ship_{n}.py": f"ship_{n} = {n}\n" for n in range(5)})
    ingest(repo)
    follow()
    write_files(repo, {f"ship_{n}.py": f"ship_{n} = -{n}\n" for n in range(1, 6)})
    (repo / "src/store.js").unlink()
    root = ingest(repo)
    client().close()
    shutil.copytree(chroma_folder, chroma_folder.with_name("before"))
    call = ChromaProcess.call
    for after in (False, True):
        for at in itertools.count(1):
            shutil.rmtree(chroma_folder)
            shutil.copytree(chroma_folder.with_name("before"), chroma_folder)
            progress.end()  # as in a new process
            writes = itertools.count(1)

            def kill(self: ChromaProcess, verb: Any, *args: Any, **none: Any) -> Any:
                if verb.__name__ not in ("add", "delete") or next(writes) != at:  # noqa: B023
                    return call(self, verb, *args, **none)
                if after:  # noqa: B023
                    call(self, verb, *args, **none)
                raise chroma.Failed("killed")

            with monkeypatch.context() as patched:
                patched.setattr(ChromaProcess, "call", kill)
                killed = Follower().turn() == 15
            assert killed == (following().state == "failed")
            if not killed:
                assert at > 3
                break
            follow()
            assert sorted(stored()) == ids_of(root), (after, at)


def test_copies_of_a_repository_share_a_collection(folder: Path, written: list[str]) -> None:
    first = ingest(write_files(folder / "one", SAMPLE))
    second = ingest(write_files(folder / "two", SAMPLE | {"own.py": "own = 1\n"}))
    follow()
    assert first.store == second.store
    assert sorted(written) == ids_of(first, second)
    assert of_stores()[first.store] == (len(written), len(written))
    services.remove(second.path)
    queue.drain()
    follow()
    assert sorted(stored()) == ids_of(first)


def test_a_removed_repository_leaves_nothing(repo: Path, chroma_folder: Path) -> None:
    ingest(repo)
    follow()
    services.remove(str(repo))
    queue.drain()
    follow()
    assert not stored()
    assert not [path for path in chroma_folder.iterdir() if path.is_dir()]
    assert following() == ("complete", 0, 0, "")


def test_a_large_collection_has_shards(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "SLICE", 2)
    monkeypatch.setattr(sync, "SHARD_ROWS", 2)
    root = ingest(repo)
    follow()
    rows = stored()
    assert sorted(rows) == ids_of(root)
    name = f"ingest_vectors_{root.store.hex}"
    shards = {row["shard"] for row in rows.values()}
    assert {name, f"{name}.2"} <= shards
    found = nearest(root.store, rows[ids_of(root)[0]]["vector"], 50)
    assert found[0] == (ids_of(root)[0], pytest.approx(0, abs=1e-5))
    assert sorted(key for key, _ in found) == ids_of(root)
    distances = [distance for _, distance in found]
    assert distances == sorted(distances)
    write_files(repo, {"src/retry.py": "def wait(n):\n    return n\n"})
    root = ingest(repo)
    follow()
    assert sorted(stored()) == ids_of(root)


def test_another_model_fills_a_new_collection(repo: Path, embeddings: Any) -> None:
    ingest(repo)
    follow()
    services.change_model(OTHER)
    queue.drain()
    root = queries.find_root(str(repo))
    follow()
    rows = stored()
    assert sorted(rows) == ids_of(root)
    assert {len(row["vector"]) for row in rows.values()} == {DIMENSION}


# --- broken, full, away, off ----------------------------------------------------------------------


def overwrite(path: Path) -> None:
    path.write_bytes(np.random.default_rng(7).bytes(path.stat().st_size))


def delete(path: Path) -> None:
    shutil.rmtree(path)


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda at: overwrite(at / DATABASE), id="database overwritten"),
        pytest.param(lambda at: (at / DATABASE).unlink(), id="database deleted"),
        pytest.param(lambda at: overwrite(at / "followed.sqlite3"), id="note overwritten"),
        pytest.param(lambda at: (at / "followed.sqlite3").unlink(), id="note deleted"),
        pytest.param(delete, id="folder deleted"),
    ],
)
def test_what_is_broken_is_written_anew(
    repo: Path, chroma_folder: Path, harm: Callable[[Path], None]
) -> None:
    root = ingest(repo)
    follow()
    client().close()
    harm(chroma_folder)
    write_files(repo, {"new.py": "x = 1\n"})
    root = ingest(repo)
    turn_until_complete(Follower())
    assert sorted(stored()) == ids_of(root)


def test_a_folder_that_is_deleted_while_it_is_used_is_written_anew(
    repo: Path, chroma_folder: Path, configure: Configure
) -> None:
    configure(retrieval_mode="vector")  # keeps the process
    root = ingest(repo)
    follower = Follower()
    follower.turn()
    shutil.rmtree(chroma_folder)
    turn_until_complete(follower)
    assert sorted(stored()) == ids_of(root)


def test_a_collection_whose_searches_fail_is_written_anew(
    repo: Path, chroma_folder: Path, configure: Configure, client: Client, monkeypatch: Any
) -> None:
    configure(retrieval_mode="vector")
    monkeypatch.setattr(sync, "SLICE", 2)
    root = ingest(write_files(repo, {f"ship_{n}.py": f"ship_{n} = {n}\n" for n in range(40)}))
    follower = Follower()
    follower.turn()
    reset_client()
    for path in chroma_folder.rglob("*"):
        if path.is_file() and path.parent != chroma_folder:
            overwrite(path)
    for _ in range(3):
        if search(client, "ship", status=None)["status"] == 200:
            break
    turn_until_complete(follower)
    assert sorted(stored()) == ids_of(root)
    assert search(client, "ship_7")["results"]


def test_on_a_full_disk_nothing_is_deleted_and_the_reason_is_told(
    repo: Path, chroma_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ingest(repo)
    follow()
    before = sorted(stored())
    write_files(repo, {"new.py": "x = 1\n"})
    ingest(repo)

    def full(*args: Any) -> None:
        raise chroma.Failed("Chroma failed: database or disk is full (code: 13)")

    follower = Follower()
    with monkeypatch.context() as patched:
        patched.setattr(disk, "has_no_room", lambda: True)
        patched.setattr(ChromaProcess, "call", full)
        pauses = [follower.turn() for _ in range(4)]
    assert pauses == [15, 30, 60, 120]
    assert following().state == "failed"
    assert "disk is full" in following().reason
    assert sorted(stored()) == before
    assert turn_until_complete(follower) == ["complete"]
    assert sorted(stored()) == ids_of(queries.find_root(root.path))


def test_it_gives_way_to_a_run(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = ingest(repo)
    run = IngestRun.objects.create(
        path="/elsewhere", name="other", model=root.model, operation="start", state="embedding"
    )
    follower = Follower()
    assert follower.turn() == 1
    assert following().state == "following"
    run.state = "completed"
    run.save()
    follower.turn()
    assert following().state == "complete"


def test_a_second_process_has_to_wait_for_the_folder(repo: Path) -> None:
    ingest(repo)
    follow()
    lock = os.open(folder() / LOCK, os.O_RDWR)
    client().close()
    assert posix.lock(lock)
    follower = Follower()
    write_files(repo, {"new.py": "x = 1\n"})
    root = ingest(repo)
    follower.turn()
    assert "Another process uses the Chroma store" in following().reason
    os.close(lock)
    assert turn_until_complete(follower) == ["complete"]
    assert sorted(stored()) == ids_of(root)


# --- retrieval mode `vector` ----------------------------------------------------------------------


def search(client: Client, query: str, status: int | None = 200) -> dict[str, Any]:
    response = client.post(
        "/tools/vector-search", {"query": query}, content_type="application/json"
    )
    assert status in (None, response.status_code), response.content
    return {"status": response.status_code, **response.json()}


def test_mode_vector_tells_how_far_it_is_behind(
    repo: Path, client: Client, configure: Configure
) -> None:
    configure(retrieval_mode="vector")
    root = ingest(repo)
    message = search(client, "retry", 502)["message"]
    assert message == f"Chroma has 0 of {root.embedded} vectors: lighthouse"
    follow()
    complete = search(client, "how often a call is repeated")
    assert complete["results"][0]["relPath"] == "src/retry.py"
    assert "degraded" not in complete
    before = root.embedded
    write_files(repo, {"src/retry.py": "def wait(n):\n    return n\n"})
    root = ingest(repo)
    key = fingerprint([root])
    progress.start({root.store: (before - 1, root.embedded)}, {root.store: key})
    behind = search(client, "how often a call is repeated")
    told = f"Chroma has {before - 1} of {root.embedded} vectors: lighthouse"
    assert (told in behind["degraded"]) == (before - 1 < root.embedded)
    assert "should_retry" not in str(behind["results"])


def test_mode_vector_without_chroma_says_what_to_do(
    repo: Path, client: Client, configure: Configure
) -> None:
    ingest(repo)
    configure(retrieval_mode="vector", chroma="off")
    refused = search(client, "retry", 502)
    assert refused["error"] == "CHROMA_UNAVAILABLE"
    assert "CODEINFO_CHROMA=follow" in refused["message"]
    assert following().state == "off"


def test_distances_are_those_of_the_parts(repo: Path) -> None:
    root = ingest(repo)
    follow()
    rows = stored()
    for live in lists.read(Root.objects.get(id=root.id)).parts:
        part = live.part
        vectors = part.codes.vectors(slice(0, len(part)))
        keys = [key for key, _, _ in part.chunks(range(len(part)))]
        assert np.allclose([rows[key]["vector"] for key in keys], vectors, atol=3e-5)
