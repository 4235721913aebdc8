"""Queues runs: inserts their rows and wakes the worker.

`IngestRun.slot` is unique, so that the database decides between concurrent requests.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import timedelta
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.core.config import config
from apps.core.errors import Conflict
from apps.index import changes, endings, queries
from apps.index.models import Clone, IngestRun, Root
from apps.ingest import skips
from apps.logs.context import request_id

# Set when the worker of this process has something to do, such as a queued run.
work_waiting = threading.Event()


def wake() -> None:
    """Wake the worker of this process, or Celery's. Other processes poll the queue."""
    work_waiting.set()
    if config().celery_broker_url:
        # Celery is an optional requirement.
        from apps.core.concurrency.celery import send  # noqa: PLC0415

        send("apps.ingest.tasks.work")


def queue_update(root: Root, paths: Sequence[str] | None) -> IngestRun | None:
    """Queue an automatic run of a root, as its folder has changed. Return None if one is live.

    paths: as `IngestRun.paths`; "" is the root itself, and so everything
    """
    fields = reembed_fields(root, queries.locked_model() or root.model)
    slot = f"auto:{root.id}"
    listed = None if paths is None or "" in paths else list(paths)
    # What is left out is counted by a look at everything.
    left_out = asdict(skips.left_out_of_root(root))
    return insert_run(slot, **fields, automatic=True, paths=listed, left_out=left_out)


def queue_fetch(root: Root) -> IngestRun | None:
    """Queue an automatic run of a cloned root, which fetches it. Return None if one waits.

    One that is under way may have fetched already, so another one may wait behind it.
    """
    fields = reembed_fields(root, queries.locked_model() or root.model)
    slots = (f"auto:{root.id}", f"fetch:{root.id}")
    runs = (insert_run(slot, **fields, automatic=True) for slot in slots)
    return next(filter(None, runs), None)


def queue_due_fetches() -> None:
    """Queue the fetch of each clone whose last one began long enough ago."""
    hours = config().clone_hours
    if not hours:
        return
    before = timezone.now() - timedelta(hours=hours)
    due = Clone.objects.filter(tried_at__lt=before).values_list("path", flat=True)
    for root in Root.objects.published().filter(path__in=list(due)):
        queue_fetch(root)


def queue_reembeds(root_ids: Iterable[UUID]) -> list[IngestRun]:
    """Queue another ingest of roots, except those that have a live run. Return the queued runs."""
    waiting = set(endings.live().requested().values_list("path", flat=True))
    locked = queries.locked_model()
    runs = []
    for root in Root.objects.published().filter(id__in=list(root_ids)).order_by("name"):
        fields = reembed_fields(root, locked or root.model)
        if root.path not in waiting and (run := insert_run(f"root:{root.id}", **fields)):
            runs.append(run)
    return runs


def busy() -> Conflict:
    """Return the error for a run that must be the only one."""
    return Conflict(
        "Another ingest is queued or under way. Try again when it has finished.", code="BUSY"
    )


def reembed_fields(root: Root, model: str) -> dict[str, object]:
    """Return the IngestRun fields of another ingest of a root."""
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
    """Insert a run and wake the worker. Return None if another run has the slot."""
    try:
        with transaction.atomic():
            run = IngestRun.objects.create(slot=slot, request_id=request_id.get(), **fields)
    except IntegrityError:
        return None
    changes.run_changed(run.id)
    wake()
    return run
