"""The repositories that were fetched by URL: their rows, and their folders in the data folder."""

import shutil
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from uuid import NAMESPACE_URL, UUID, uuid5

from django.utils import timezone

from apps.index import endings
from apps.index.models import Clone, IngestRun, Root
from apps.ingest.discovery.own_data import clones_folder, is_clone
from apps.ingest.remote.address import RemoteAddress

# A row or folder that had no run yet may belong to a request that is about to queue one.
GRACE = timedelta(hours=1)


def clone_of(remote: RemoteAddress) -> Clone:
    """Return the clone of an address, a new one if there is none. It is fetched by its first
    ingest."""
    # A data folder that was moved has another path.
    fields = {"url": str(remote), "path": path_of(remote)}
    return Clone.objects.update_or_create(id=_id_of(remote), defaults=fields)[0]


def follow_data_folder() -> None:
    """Correct the paths of all clones if the data folder was moved, or restored to another place.
    Called at start-up."""
    for clone in Clone.objects.all():
        old, new = clone.path, str(clones_folder() / clone.id.hex)
        # Where the address was ingested again meanwhile, there are two roots.
        if old != new and not Root.objects.filter(path=new).exists():
            for rows in (Root.objects, IngestRun.objects, Clone.objects):
                rows.filter(path=old).update(path=new)


def path_of(remote: RemoteAddress) -> str:
    """Return the folder of an address, which has no clone yet perhaps."""
    return str(clones_folder() / _id_of(remote).hex)


def _id_of(remote: RemoteAddress) -> UUID:
    return uuid5(NAMESPACE_URL, str(remote))


def urls() -> dict[str, str]:
    """Return the address of each clone by its folder."""
    return dict(Clone.objects.values_list("path", "url"))


def forget_unused(path: str) -> None:
    """Delete a clone, its folder too, if nothing is ingested from it, nor about to be."""
    folder = Path(path)
    if not is_clone(folder) or Root.objects.filter(path=path).exists():
        return
    if endings.live().filter(path=path).exists():
        return
    Clone.objects.filter(path=path).delete()
    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Delete what processes that were killed have left of clones."""
    before = timezone.now() - GRACE
    for path, created_at in list(Clone.objects.values_list("path", "created_at")):
        if created_at < before or IngestRun.objects.filter(path=path).exists():
            forget_unused(path)
    with suppress(OSError):
        for folder in list(clones_folder().iterdir()):
            is_known = Clone.objects.filter(path=str(folder)).exists()
            if not is_known and folder.stat().st_mtime < before.timestamp():
                forget_unused(str(folder))
