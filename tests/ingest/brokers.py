"""A broker in memory, for workers of Celery in this process."""

from collections.abc import Callable, Iterator

import pytest

from apps.ingest import tasks
from apps.ingest.worker.loop import Worker
from codeinfo.celery import app


@pytest.fixture
def broker(configure: Callable[..., None]) -> Iterator[None]:
    configure(celery_broker_url="memory://")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app.conf, "broker_url", "memory://")
        patch.setattr(tasks, "worker", Worker())
        yield
