"""The first start of a data folder: an administrator, and something to search."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from apps.embedding.static import MODEL_ID
from apps.index.models import IngestRun, Root
from apps.ingest import services
from apps.ingest.runs import queue, recovery
from apps.site import first_start


@pytest.mark.django_db
def test_an_administrator_is_made_once_and_can_log_in(tmp_path: Path, client: Client) -> None:
    password = first_start.ensure_admin(tmp_path)
    assert password and client.login(username="admin", password=password)
    assert (tmp_path / "admin-password.txt").read_text().strip() == password
    assert first_start.ensure_admin(tmp_path) is None
    assert get_user_model().objects.count() == 1


@pytest.mark.django_db
def test_the_first_root_is_queued_once(settings: Any, folder: Path) -> None:
    (folder / "a.py").write_text("def f(): pass\n")
    known = replace(settings.CONFIG, first_root=str(folder))
    run = first_start.ensure_first_root(known)
    assert run is not None and run.path == str(folder) and run.state == "queued"
    assert first_start.ensure_first_root(known) is None
    assert IngestRun.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("first_root", ["none", "NONE", "/no/such/folder", "/etc"])
def test_no_first_root_keeps_nothing_from_starting(settings: Any, first_root: str) -> None:
    assert first_start.ensure_first_root(replace(settings.CONFIG, first_root=first_root)) is None


def killed(run: IngestRun, **changes: Any) -> None:
    """What the next start makes of a run whose process died."""
    died = {"state": "embedding", "owner": "gone:1:x", **changes}
    IngestRun.objects.filter(id=run.id).update(**died)
    recovery.recover()


@pytest.mark.door
@pytest.mark.django_db
def test_an_interrupted_first_ingest_is_repeated(settings: Any, folder: Path) -> None:
    (folder / "a.py").write_text("def f(): pass\n")
    known = replace(settings.CONFIG, first_root=str(folder))
    for _ in range(2):
        run = first_start.ensure_first_root(known)
        assert run is not None and run.state == "queued"
        killed(run)
    last = first_start.ensure_first_root(known)
    assert last is not None
    queue.drain()
    assert Root.objects.published().get().path == str(folder)
    assert first_start.ensure_first_root(known) is None
    services.remove(str(folder))
    assert first_start.ensure_first_root(known) is None


@pytest.mark.django_db
def test_a_cancelled_first_ingest_is_not_repeated(settings: Any, folder: Path) -> None:
    (folder / "a.py").write_text("def f(): pass\n")
    known = replace(settings.CONFIG, first_root=str(folder))
    run = first_start.ensure_first_root(known)
    assert run is not None
    services.cancel(run.id)
    assert first_start.ensure_first_root(known) is None


@pytest.mark.django_db
def test_a_run_killed_while_it_was_being_cancelled_does_not_come_back(
    settings: Any, folder: Path
) -> None:
    (folder / "a.py").write_text("def f(): pass\n")
    known = replace(settings.CONFIG, first_root=str(folder))
    run = first_start.ensure_first_root(known)
    assert run is not None
    killed(run, cancel_requested=True)
    assert first_start.ensure_first_root(known) is None


@pytest.mark.django_db
def test_a_dead_ingest_of_another_folder_is_not_the_first_root(settings: Any, folder: Path) -> None:
    other, first = folder / "other", folder / "first"
    for each in (other, first):
        each.mkdir()
        (each / "a.py").write_text("def f(): pass\n")
    killed(services.start_run(path=str(other), name="other", model=MODEL_ID))
    assert first_start.ensure_first_root(replace(settings.CONFIG, first_root=str(first))) is None
