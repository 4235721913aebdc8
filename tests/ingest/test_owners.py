"""Whose vectors and words they are: what a sweep may take, and what it leaves and tells of."""

import io
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from apps.core.config import config
from apps.embedding.static import MODEL_ID
from apps.index import stores
from apps.index.installation import installation_id
from apps.index.models import Installation, RemovedRoot, Root
from apps.index.types import Origin
from apps.index.vectors.collections import Collections
from apps.index.vectors.store import get_store, reset_store
from apps.ingest import services
from apps.ingest.runs import orphans, queue, sweep
from tests.support.index import Server, chunk_record
from tests.support.ingested import ingest

pytestmark = [pytest.mark.django_db, pytest.mark.door]

ELSEWHERE = Origin(str(uuid4()), "/elsewhere/ships", "ships")


def fill(root_id: UUID, origin: Origin | None) -> None:
    """The vector of one chunk, as a run of `origin` would have written it."""
    record = chunk_record()
    vectors = np.ones((1, 256), dtype=np.float32)
    get_store().add(root_id, MODEL_ID, [record.id], vectors, origin)


def forget(root: Root) -> None:
    """As if the database had never known this root."""
    Root.objects.filter(id=root.id).delete()
    RemovedRoot.objects.all().delete()


def test_an_ingest_writes_whose_it_is(repo: Path, store: Any) -> None:
    root = ingest(repo)
    expected = Origin(installation_id(), str(repo), root.name)
    assert store.origins()[root.id] == expected
    assert installation_id() == str(Installation.objects.get().uid)


@pytest.mark.fault("The database is lost or replaced")
@pytest.mark.parametrize("origin", [None, ELSEWHERE], ids=["no id", "another's id"])
def test_vectors_that_no_record_tells_of_stay(
    store: Any, origin: Origin | None, caplog: pytest.LogCaptureFixture
) -> None:
    root_id = uuid4()
    fill(root_id, origin)
    with caplog.at_level(logging.WARNING, "codeinfo.ingest"):
        sweep.sweep()
    assert store.count(root_id) == 1
    (orphan,) = orphans.known()
    path = origin.path if origin else ""
    assert (orphan.store, orphan.path, orphan.model) == (root_id, path, MODEL_ID)
    assert str(root_id) in str([record.__dict__ for record in caplog.records])


def test_a_different_database_on_the_same_folder_loses_nothing(repo: Path, store: Any) -> None:
    root = ingest(repo)
    count = store.count(root.id)
    forget(root)
    Installation.objects.all().delete()
    sweep.sweep()
    assert store.count(root.id) == count > 0
    assert [each.path for each in orphans.known()] == [str(repo)]


def test_an_older_database_of_the_same_installation_loses_nothing(repo: Path, store: Any) -> None:
    root = ingest(repo)
    forget(root)
    sweep.sweep()
    assert store.count(root.id)


def test_the_rest_of_a_removal_is_deleted_and_logged(
    repo: Path, store: Any, caplog: pytest.LogCaptureFixture
) -> None:
    root = ingest(repo)
    root_id, rows = root.id, store.count(root.id)
    Root.objects.all().delete()
    with caplog.at_level(logging.INFO, "codeinfo.ingest"):
        sweep.sweep()
    assert not get_store().collections()
    logged = [
        each.__dict__["context"] for each in caplog.records if each.message == "index deleted"
    ]
    named = {"root": str(root_id), "path": str(repo), "name": repo.name}
    assert logged == [{**named, "vectors": rows}]


@pytest.mark.fault("The database is lost or replaced")
def test_what_another_installation_wrote_for_a_removed_root_stays(repo: Path, store: Any) -> None:
    """As beside a copy of the database that has become an installation of its own."""
    root = ingest(repo)
    store.set_origin(root.id, ELSEWHERE)
    services.remove(root.path)
    sweep.sweep()
    assert store.count(root.id)


@pytest.mark.fault("The database is lost or replaced")
def test_an_index_without_an_id_is_adopted_where_the_root_is_known(repo: Path, store: Any) -> None:
    root = Root.objects.create(path=str(repo), name="ships", model=MODEL_ID, generation=1)
    fill(root.id, None)
    sweep.sweep()
    expected = Origin(installation_id(), str(repo), "ships")
    assert store.origins()[root.id] == expected
    # Adopting changes nothing else of it.
    assert store.count(root.id) == 1
    assert store.nearest(root.id, np.ones(256, np.float32), 1)


@pytest.mark.fault("The database is lost or replaced")
def test_the_command_drops_what_it_names_and_nothing_that_is_in_use(repo: Path, store: Any) -> None:
    root, orphan, other = ingest(repo), uuid4(), uuid4()
    fill(orphan, None)
    fill(other, ELSEWHERE)
    with pytest.raises(CommandError, match="drop_index deletes only"):
        call_command("drop_index", str(root.id))
    with pytest.raises(CommandError, match="No index"):
        call_command("drop_index", str(uuid4()))
    with pytest.raises(CommandError, match="not the id"):
        call_command("drop_index", "lighthouse")
    out = io.StringIO()
    call_command("drop_index", str(orphan), stdout=out)
    assert "1 vector" in out.getvalue()
    assert get_store().collections() == {root.id, other}


def truncate(root_id: UUID, origin: Origin | None) -> None:
    """More rows than Chroma holds back, whose index files then lack their second half."""
    ids = [f"r:a.py:{number}" for number in range(1_500)]
    vectors = np.random.default_rng(1).normal(size=(1_500, 256)).astype(np.float32)
    chroma_folder = config().data_dir / "chroma"
    before = set(chroma_folder.iterdir())
    get_store().add(root_id, MODEL_ID, ids, vectors, origin)
    reset_store()
    for file in [each for new in set(chroma_folder.iterdir()) - before for each in new.iterdir()]:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def be_foreign(root_id: UUID, origin: Origin | None) -> None:
    """Records that this codeinfo did not make."""
    name, vectors = get_store()._name(root_id), np.ones((1, 3), np.float32)
    get_store()._client.call(Collections.add, name, {"a": "b"}, ["1"], vectors)


@pytest.mark.fault("The database is lost or replaced")
@pytest.mark.parametrize("origin", [None, ELSEWHERE], ids=["no id", "another's id"])
@pytest.mark.parametrize("make", [truncate, be_foreign])
def test_an_orphan_that_cannot_be_read_hides_no_other_and_can_be_dropped(
    repo: Path, store: Any, make: Callable[[UUID, Origin | None], None], origin: Origin | None
) -> None:
    removed, good, bad = ingest(repo), uuid4(), uuid4()
    fill(good, None)
    make(bad, origin)
    Root.objects.all().delete()
    sweep.due.set()
    sweep.sweep()
    assert not sweep.due.is_set()
    assert removed.id not in get_store().collections()
    assert {each.store for each in orphans.known()} == {good, bad}
    call_command("drop_index", str(bad), stdout=io.StringIO())
    assert get_store().collections() == {good}


def test_orphaned_folders_are_ingested_again(repo: Path, store: Any) -> None:
    root = ingest(repo)
    forget(root)
    sweep.sweep()
    services.ingest_again([each.store for each in orphans.known()])
    queue.drain()
    recreated = Root.objects.get()
    assert (recreated.path, recreated.name, recreated.last_state) == (
        str(repo),
        repo.name,
        "completed",
    )
    assert not orphans.unknown_folders()
    # What stood before is left to the command.
    assert get_store().collections() == {root.id, recreated.id}


@pytest.mark.door
def test_two_installations_on_one_chroma_server_leave_each_other_alone(
    repo: Path, store: Any, server: Server, configure: Callable[..., None]
) -> None:
    reset_store()
    configure(chroma_url=server.url)
    root, theirs = ingest(repo), uuid4()
    fill(theirs, ELSEWHERE)
    sweep.sweep()
    assert get_store().collections() == {root.id, theirs}
    # A neighbour is no fault: nothing is offered for what it has.
    assert [each.elsewhere for each in orphans.known()] == [True]
    assert not orphans.unknown_folders()
    with pytest.raises(CommandError, match="--of-another-installation"):
        call_command("drop_index", str(theirs))
    call_command("drop_index", "--of-another-installation", str(theirs), stdout=io.StringIO())
    assert get_store().collections() == {root.id}
    reset_store()


@pytest.mark.door
def test_orphans_dropped_by_another_process_are_no_longer_reported(
    store: Any, server: Server, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    reset_store()
    configure(chroma_url=server.url)
    orphan = uuid4()
    fill(orphan, None)
    worker = queue.Worker()
    worker.turn()
    assert [each.store for each in orphans.known()] == [orphan]
    stores.drop_vectors(orphan)  # as the command does, in its own process
    monkeypatch.setattr(queue, "SWEEP_SECONDS", 0)
    worker.turn()
    assert not orphans.known()
    reset_store()
