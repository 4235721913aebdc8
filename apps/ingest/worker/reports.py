"""What a worker tells its server. The functions are called in the server."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core.concurrency.hub import hub
from apps.index import changes, endings
from apps.index.endings import Ending
from apps.index.vectors.follower import is_in_worker
from apps.index.vectors.following import State, progress
from apps.ingest.worker.supervisor import supervisor
from apps.logs.store import get_store


def started(owner: str) -> None:
    """`owner`: of the runs that this worker will claim."""
    if supervisor.child is not None:
        supervisor.child.owner = owner


def ending(orders: int) -> None:
    """It ends as nothing is to be done. `orders`: how many it has received."""
    if supervisor.child is not None:
        supervisor.child.received = orders


def logged(entry: Mapping[str, Any]) -> None:
    """Number and store a log entry."""
    get_store().add(entry)


def changed(topic: str, key: str) -> None:
    """Notify the subscribers in this process and in others."""
    hub.notify(topic, key)
    if topic == changes.ROOTS and not is_in_worker():
        changes.chroma_due.set()


def not_saved(unsaved: Mapping[UUID, tuple[Ending, datetime]]) -> None:
    """Remember the ends of runs whose rows do not have them yet, until this process finds that
    they have (`finish.save`)."""
    endings.unsaved.update(unsaved)


def followed(state: State) -> None:
    """Show how far Chroma has followed."""
    progress.show(state)
