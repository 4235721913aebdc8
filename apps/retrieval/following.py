"""Maps roots as soon as they are published, in this process and in the search processes."""

from collections.abc import Sequence

from channels.db import database_sync_to_async
from django.db import DatabaseError

from apps.core.concurrency.hub import hub
from apps.index import changes, queries
from apps.index.mapped.opened import opened_roots
from apps.index.models import Root
from apps.retrieval.search_processes import search_processes


async def follow_changes() -> None:
    """Map each root that is published, and unmap those that are removed. Runs until it is
    cancelled."""
    with hub.subscribe(changes.ROOTS) as notices:
        while True:
            await notices.next_batch()
            try:
                await database_sync_to_async(_follow, thread_sensitive=False)()
            except DatabaseError:
                continue  # the next search maps it


def _follow() -> None:
    roots = queries.published_roots()
    map_only(roots)
    search_processes.tell(map_only, roots)


def map_only(roots: Sequence[Root]) -> None:
    """Map these roots, and unmap all others."""
    opened_roots.keep_only(root.id for root in roots)
    for root in roots:
        opened_roots.get(root)
