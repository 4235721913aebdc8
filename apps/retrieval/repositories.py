"""Which repositories can be asked, and the lock that names their common embedder."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from apps.ingest import queries
from apps.ingest.models import IndexLock, Root
from apps.ingest.paths import map_path
from codeinfo.errors import Conflict, NotFound
from codeinfo.times import wire_time

# How many ids the error about an unknown one lists.
MOST_NAMED = 50


def repo_id(root: Root) -> str:
    """What callers name a repository by: the root's name, else its folder, else its key."""
    return root.name.strip() or PurePosixPath(root.path).name or str(root.id)


def required_lock() -> IndexLock:
    """The index lock. Raises Conflict INGEST_REQUIRED where nothing has been ingested."""
    lock = queries.index_lock()
    if lock is None:
        raise Conflict("INGEST_REQUIRED: run ingest before vector search", code="INGEST_REQUIRED")
    return lock


def roots_for(repository: str | None, model: str) -> Sequence[Root]:
    """The published roots to search, embedded with `model`: all of them, or the one with exactly
    this id.

    Raises NotFound REPO_NOT_FOUND, whose details.repo is the id asked for, and Conflict
    INGEST_REQUIRED where that one waits to be embedded again.
    """
    roots = queries.published_roots()
    if repository is None:
        return [root for root in roots if root.model == model]
    found = [the_one(repository, roots)]
    if found[0].model != model:
        text = f"INGEST_REQUIRED: {repository} has yet to be embedded again with {model}"
        raise Conflict(text, code="INGEST_REQUIRED")
    return found


def the_one(repository: str, roots: Sequence[Root] | None = None) -> Root:
    """The published root with exactly this id; where two share it, the last ingested.

    Raises NotFound REPO_NOT_FOUND, which names the ids there are; details.repo is the asked one.
    """
    known = queries.published_roots() if roots is None else roots
    for root in known:
        if repo_id(root) == repository:
            return root
    text = f"REPO_NOT_FOUND: no repository {repository!r} is ingested. {_known(known)}"
    raise NotFound(text, code="REPO_NOT_FOUND", details={"repo": repository})


def _known(roots: Sequence[Root]) -> str:
    ids = [repr(repo_id(root)) for root in roots]
    if not ids:
        return "None is, so far."
    more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
    return f"Known ids: {', '.join(ids[:MOST_NAMED])}{more}."


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
