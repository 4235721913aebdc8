"""Which repositories can be asked, and the lock that names their common embedder."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from apps.ingest import queries
from apps.ingest.models import IndexLock, Root
from apps.ingest.paths import map_path
from codeinfo.errors import Conflict, NotFound
from codeinfo.times import wire_time


def repo_id(root: Root) -> str:
    """What callers name a repository by: the root's name, else its folder, else its key."""
    return root.name.strip() or PurePosixPath(root.path).name or str(root.id)


def required_lock() -> IndexLock:
    """The index lock. Raises Conflict INGEST_REQUIRED where nothing has been ingested."""
    lock = queries.index_lock()
    if lock is None:
        raise Conflict("INGEST_REQUIRED: run ingest before vector search", code="INGEST_REQUIRED")
    return lock


def roots_for(repository: str | None) -> Sequence[Root]:
    """The published roots to search: all of them, or the one with exactly this id.

    Raises NotFound REPO_NOT_FOUND, whose details.repo is the id asked for.
    """
    roots = queries.published_roots()
    if repository is None:
        return roots
    found = [root for root in roots if repo_id(root) == repository]
    if not found:
        raise NotFound("REPO_NOT_FOUND", code="REPO_NOT_FOUND", details={"repo": repository})
    return found[:1]


def list_repositories() -> dict[str, Any]:
    """The payload of ListIngestedRepositories, the last ingested first."""
    lock = queries.index_lock()
    return {
        "repos": [_wire(root) for root in queries.published_roots()],
        "lockedModelId": lock.model if lock else None,
    }


def _wire(root: Root) -> dict[str, Any]:
    mapped, at = map_path(root), root.last_ingest_at
    wire: dict[str, Any] = {
        "id": repo_id(root),
        "description": root.description or None,
        "containerPath": mapped.container_path,
        "hostPath": mapped.host_path,
        "lastIngestAt": at and wire_time(at),
        "modelId": root.model,
        "counts": {"files": root.files, "chunks": root.chunks, "embedded": root.embedded},
        "lastError": root.last_error or None,
    }
    if mapped.warning:
        wire["hostPathWarning"] = mapped.warning
    return wire
