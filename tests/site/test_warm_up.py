"""After a start, the first search is prepared before anything else reads the index."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.index.vectors.store import is_open, reset_store
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


@pytest.mark.door  # it may start processes
@pytest.mark.django_db
def test_before_the_first_ingest_chroma_is_not_started(
    configure: Callable[..., None], tmp_path: Path
) -> None:
    reset_store()
    configure(data_dir=tmp_path)
    assert queue.Worker().turn() is False
    assert not is_open()
