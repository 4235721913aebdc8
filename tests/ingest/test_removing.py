"""Removing a repository: it is gone at once; the rows of its files are deleted later, in slices."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from apps.index.models import Root, SourceFile
from apps.index.texts import get_texts
from apps.ingest.runs import recovery, sweep
from apps.ingest.runs.job import RunCancelled
from apps.ingest.worker.supervisor import supervisor
from tests.support.ingested import ingest, write_files
from tests.support.parts import parts_on_disk

pytestmark = [pytest.mark.door, pytest.mark.django_db]

Remove = Callable[[Root], None]


@pytest.fixture
def deleted() -> Iterator[list[int]]:
    """How many rows of files each statement deletes."""
    found: list[int] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith('DELETE FROM "index_sourcefile"'):
            found.append(len(params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield found


@pytest.fixture
def remove(client: Client, monkeypatch: pytest.MonkeyPatch) -> Remove:
    """Remove a root over HTTP, as in a server, whose worker sweeps later."""

    def call(root: Root) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(supervisor, "state", lambda: "ready")
            path = f"/ingest/remove/{root.path}"
            assert client.post(path, "", content_type="application/json").status_code == 200

    return call


@pytest.fixture
def ships(folder: Path, index: None) -> Root:
    """Eight files, and one that is skipped."""
    files = {f"f{i}.md": f"# Ship {i}\n" for i in range(8)}
    return ingest(write_files(folder / "ships", {**files, "package-lock.json": "{}\n"}))


def test_a_removal_deletes_no_file_and_the_sweep_deletes_them_in_slices(
    client: Client,
    folder: Path,
    ships: Root,
    remove: Remove,
    deleted: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ingest(write_files(folder / "kept", {"a.md": "# A lighthouse\n"}))
    deleted.clear()
    remove(ships)
    assert not deleted
    assert [each["name"] for each in client.get("/ingest/roots").json()["roots"]] == ["kept"]
    found = client.post("/tools/grep", {"pattern": "# "}, content_type="application/json").json()
    assert [row["relPath"] for row in found["results"]] == ["a.md"]

    def stop() -> None:
        if deleted:
            raise RunCancelled

    monkeypatch.setattr(sweep, "FILES_AT_ONCE", 4)
    with pytest.raises(RunCancelled):
        sweep.sweep(stop)
    assert deleted == [4] and sweep.due.is_set()
    # A start does the rest.
    recovery.recover()
    sweep.sweep()
    assert deleted == [4, 4, 1]
    assert list(SourceFile.objects.values_list("path", flat=True)) == ["a.md"]
    assert len(get_texts().keys()) == 1 and not sweep.due.is_set()


def test_a_folder_that_is_ingested_again_before_the_sweep_keeps_its_new_files(
    client: Client, ships: Root, remove: Remove
) -> None:
    remove(ships)
    again = ingest(Path(ships.path))
    sweep.sweep()
    assert set(SourceFile.objects.values_list("root_id", flat=True)) == {again.id}
    again.refresh_from_db()
    assert parts_on_disk() == {entry["name"] for entry in again.parts}
    found = client.post("/tools/grep", {"pattern": "# Ship"}, content_type="application/json")
    assert len(found.json()["results"]) == 8


def test_the_skip_list_of_a_removed_root_is_empty_at_once(
    client: Client, ships: Root, remove: Remove
) -> None:
    where = f"/ui/ingest/skipped?run={ships.last_run_id}"
    assert "package-lock.json" in client.get(where).content.decode()
    remove(ships)
    assert "package-lock.json" not in client.get(where).content.decode()
