"""The model lock: all roots share one embedder, as distances of two embedders do not compare."""

from uuid import UUID, uuid4

from apps.core.errors import Conflict
from apps.index import changes
from apps.index.models import IndexLock, IngestRun, Root


def locked(model: str) -> Conflict:
    """Return the error for another embedder than `model`."""
    return Conflict(
        f"The index is locked to the embedding model {model}. To use another, embed all folders "
        "again with it: on the Ingest page, or by POST /ingest/model.",
        code="MODEL_LOCKED",
        details={"lockedModelId": model},
    )


def take(run: IngestRun, dimension: int) -> None:
    """Lock the index, unless it is locked. Called before vectors are written. Raises Conflict
    MODEL_LOCKED if it is locked to another model or dimension."""
    wanted = {"model": run.model, "dimension": dimension}
    if IndexLock.objects.filter(id=1, **wanted).update(token=run.id):
        return
    lock, created = IndexLock.objects.get_or_create(id=1, defaults={**wanted, "token": run.id})
    if created:
        changes.roots_changed()
    elif lock.model != run.model:
        raise locked(lock.model)
    elif lock.dimension != dimension:
        raise Conflict(
            f"The index is locked to {run.model} with {lock.dimension} dimensions, and it now "
            f"gives {dimension}. Remove all folders and ingest them again.",
            code="MODEL_LOCKED",
            details={"lockedModelId": lock.model},
        )
    else:
        take(run, dimension)  # another process has made it since


def move(model: str, dimension: int) -> None:
    """Lock the index to another model. Roots of other models cannot be searched until they have
    been embedded again."""
    values = {"model": model, "dimension": dimension, "token": uuid4()}
    IndexLock.objects.update_or_create(id=1, defaults=values)
    changes.roots_changed()


def release(ending: UUID | None = None) -> bool:
    """Unlock the index if it is empty: no live chunk, and no run that may write one. Return whether
    this call unlocked it.

    ending: the caller's run, which does not count

    No run loses the lock. One that starts after `writing` was read takes the lock after that, which
    changes the token; and one that ended before has published before, which is read last.
    """
    lock = IndexLock.objects.first()
    writing = IngestRun.objects.running()
    if ending:
        writing = writing.exclude(id=ending)
    if lock is None or writing.exists():
        return False
    if Root.objects.published().filter(chunks__gt=0).exists():
        return False
    released, _ = IndexLock.objects.filter(token=lock.token).delete()
    if released:
        changes.roots_changed()
    return bool(released)
