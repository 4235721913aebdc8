"""A request of a client, and what it is answered."""

import csv
import json
from pathlib import Path
from typing import Any

from django.test import Client

from apps.core.types import JSON
from apps.embedding.catalogue import DEFAULT_MODEL
from apps.index import queries
from apps.index.models import Root
from apps.ingest.runs import queue


def post(client: Client, address: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    raw = "" if body is None else json.dumps(body)
    answer = client.post(address, raw, content_type="application/json")
    return answer.status_code, answer.json()


def ingested(client: Client, folder: Path, **options: Any) -> JSON:
    """Start an ingest and do it; how it ended."""
    body = {"path": str(folder), "name": folder.name, "model": DEFAULT_MODEL, **options}
    started = client.post("/ingest/start", json.dumps(body), content_type="application/json")
    assert started.status_code == 202, started.content
    queue.drain()
    return dict(client.get(f"/ingest/status/{started.json()['runId']}").json())


def skipped(client: Client) -> dict[str, str]:
    """What the list of skipped files says of the only root."""
    root = Root.objects.get()
    listed = client.get(f"/ui/ingest/skipped.csv?root={root.id}").getvalue().decode()
    rows = list(csv.reader(listed.splitlines()))[1:]
    return {path: reason for path, reason, _ in rows}


def paths() -> list[str]:
    """The ingested files of the only root."""
    live = queries.live_files(Root.objects.get()).filter(skip_reason="")
    return sorted(live.values_list("path", flat=True))
