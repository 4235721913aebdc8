"""Queueing runs: a run is a row, and the worker is woken.

The database decides between racing requests: `IngestRun.slot` is unique.
"""

import threading
from collections.abc import Iterable
from uuid import UUID

from django.db import IntegrityError, transaction

from apps.core.config import config
from apps.core.errors import Conflict
from apps.index import changes, endings, queries
from apps.index.models import IngestRun, Root
from apps.logs.context import request_id

# Set when a run was queued or something else waits; the worker of this process looks then.
work_waiting = threading.Event()


def wake() -> None:
    """Have the worker look at the queue. A worker of another process finds the row by itself."""
    work_waiting.set()
    if config().celery_broker_url:
        # Celery is an extra: only installations that name a broker have it.
        from apps.core.celery import send  # noqa: PLC0415

        send("apps.ingest.tasks.work")


def queue_reembeds(root_ids: Iterable[UUID]) -> list[IngestRun]:
    """Queue another ingest of several roots, whatever is under way; one that waits already is not
    queued twice. Returns the runs that were queued."""
    waiting = set(endings.live().values_list("path", flat=True))
    locked = queries.locked_model()
    runs = []
    for root in Root.objects.published().filter(id__in=list(root_ids)).order_by("name"):
        again = reembed_fields(root, locked or root.model)
        if root.path not in waiting and (run := insert_run(f"root:{root.id}", **again)):
            runs.append(run)
    return runs


def busy() -> Conflict:
    return Conflict("Another ingest is queued or under way.", code="BUSY")


def reembed_fields(root: Root, model: str) -> dict[str, object]:
    return {
        "operation": IngestRun.Operation.REEMBED,
        "root": root,
        "path": root.path,
        "name": root.name,
        "description": root.description,
        "model": model,
        "plain_folder": root.plain_folder,
    }


def insert_run(slot: str, **fields: object) -> IngestRun | None:
    """A row, unless its slot is taken: the database decides between racing requests."""
    try:
        with transaction.atomic():
            run = IngestRun.objects.create(slot=slot, request_id=request_id.get(), **fields)
    except IntegrityError:
        return None
    changes.run_changed(run.id)
    wake()
    return run
