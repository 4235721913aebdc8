"""An ingest by URL, as a client of the API starts it."""

from typing import Any

from django.test import Client

from apps.core.types import JSON
from apps.embedding.catalogue import DEFAULT_MODEL
from apps.ingest.runs import queue
from tests.ingest.requests import post


def start(client: Client, url: str, **options: Any) -> str:
    """Start it; the id of the run."""
    status, answer = post(client, "/ingest/start", {"path": url, "model": DEFAULT_MODEL, **options})
    assert status == 202, answer
    return str(answer["runId"])


def cloned(client: Client, url: str, **options: Any) -> JSON:
    """Ingest a repository by its URL; how that ended."""
    run = start(client, url, **options)
    queue.drain()
    return dict(client.get(f"/ingest/status/{run}").json())
