"""After a start, the first search is prepared before anything else reads the index."""

import asyncio
import threading

import pytest

from apps.core.data import folder_lock
from apps.core.errors import Unavailable
from apps.ingest.runs.submit import work_waiting
from apps.ingest.worker.supervisor import Supervisor
from apps.retrieval import search
from apps.site import server

SECONDS = 30


@pytest.mark.django_db(transaction=True)
def test_the_worker_starts_when_searches_are_prepared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []

    supervisor = Supervisor()
    looked = threading.Event()

    def claim() -> None:
        order.append("start a worker")
        looked.set()
        raise Unavailable("Not in a test.")

    monkeypatch.setattr(search, "warm_up", lambda: order.append("prepare"))
    monkeypatch.setattr(folder_lock, "claim", claim)
    work_waiting.clear()
    supervisor.start(delay=SECONDS)
    asyncio.run(server.warm_up())
    assert looked.wait(SECONDS)
    supervisor.stop()
    assert order[:2] == ["prepare", "start a worker"]
