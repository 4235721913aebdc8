"""The admin shows roots, runs and files, and can embed again or remove; it edits nothing."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.ingest import services
from apps.ingest.models import IngestRun, Root
from apps.ingest.runs import queue
from tests.support.ingested import ingest

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", ["root", "ingestrun", "sourcefile"])
def test_rows_can_be_found_and_seen_but_not_written(
    admin_client: Client, repo: Path, store: Any, model: str
) -> None:
    ingest(repo)
    listing = admin_client.get(f"/admin/ingest/{model}/", {"q": "light"})
    assert listing.status_code == 200
    assert admin_client.get(f"/admin/ingest/{model}/add/").status_code == 403
    root = Root.objects.get()
    page = admin_client.get(f"/admin/ingest/root/{root.id}/change/")
    assert page.status_code == 200
    assert b'name="_save"' not in page.content


def test_selected_roots_are_embedded_again(admin_client: Client, repo: Path, store: Any) -> None:
    root = ingest(repo)
    data = {"action": "reembed", "_selected_action": str(root.id)}
    assert admin_client.post("/admin/ingest/root/", data).status_code == 302
    assert IngestRun.objects.get(state="queued").path == str(repo)
    queue.drain()
    root.refresh_from_db()
    assert root.generation == 2


@pytest.mark.parametrize("one", [True, False])
def test_deleting_a_root_takes_its_vectors_along(
    admin_client: Client, repo: Path, store: Any, one: bool
) -> None:
    root = ingest(repo)
    if one:
        answer = admin_client.post(f"/admin/ingest/root/{root.id}/delete/", {"post": "yes"})
    else:
        data = {"action": "delete_selected", "_selected_action": str(root.id), "post": "yes"}
        answer = admin_client.post("/admin/ingest/root/", data)
    assert answer.status_code == 302
    assert not Root.objects.exists()
    assert not store.collections()


def test_nothing_is_deleted_while_a_run_waits(admin_client: Client, repo: Path, store: Any) -> None:
    root = ingest(repo)
    services.reembed(str(repo))
    answer = admin_client.post(f"/admin/ingest/root/{root.id}/delete/", {"post": "yes"})
    assert answer.status_code == 403
    assert Root.objects.filter(id=root.id).exists()
