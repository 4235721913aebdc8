"""After a start, the first search is prepared before anything else reads the index."""

import asyncio

import pytest

from apps.ingest.runs import queue
from apps.retrieval import search
from apps.site import server

SECONDS = 30


def test_the_worker_checks_the_stores_when_searches_are_prepared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []

    def turn() -> bool:
        order.append("check")
        worker.end()
        return False

    monkeypatch.setattr(search, "warm_up", lambda: order.append("prepare"))
    queue.work_waiting.clear()
    worker = queue.Worker(delay=SECONDS)
    monkeypatch.setattr(worker, "turn", turn)
    worker.start()
    asyncio.run(server.warm_up())
    worker.join(SECONDS)
    assert order == ["prepare", "check"]
    assert not worker.is_alive()
