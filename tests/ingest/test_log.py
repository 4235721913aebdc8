"""What a run writes in the log belongs to it, and to the request that asked for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.embedding.static import MODEL_ID
from apps.ingest.runs import queue
from tests.support.entries import Entries

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def ask(client: Client, path: str, request: str, body: Any = None) -> Any:
    headers = {"x-request-id": request}
    return client.post(path, body, content_type="application/json", headers=headers).json()


def test_every_log_entry_of_a_run_has_the_run_and_the_request(
    client: Client, repo: Path, index: None, configure: Callable[..., None]
) -> None:
    configure(log_progress_ms=0)
    with Entries() as entries:
        body = {"path": str(repo), "name": "lighthouse", "model": MODEL_ID}
        run = ask(client, "/ingest/start", "asked-1", body)["runId"]
        queue.drain()
    logged = [e for e in entries.of("asked-1") if e["message"].startswith("ingest")]
    messages = [entry["message"] for entry in logged]
    assert (messages[0], messages[-1]) == ("ingest start", "ingest completed")
    assert "ingest progress" in messages
    assert {entry["context"]["runId"] for entry in logged} == {run}


def test_a_run_cancelled_in_the_queue_is_logged_with_its_request(
    client: Client, repo: Path
) -> None:
    with Entries() as entries:
        body = {"path": str(repo), "name": "lighthouse", "model": MODEL_ID}
        run = ask(client, "/ingest/start", "asked-2", body)["runId"]
        ask(client, f"/ingest/cancel/{run}", "asked-3")
    (ended,) = [e for e in entries.all if e["message"] == "ingest cancelled"]
    assert (ended["requestId"], ended["context"]["runId"]) == ("asked-2", run)
