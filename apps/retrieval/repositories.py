"""Which repositories can be asked, and the lock that names their common embedder."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from apps.core.errors import Conflict, NotFound
from apps.core.times import wire_time
from apps.index import queries
from apps.index.models import Root
from apps.index.paths import map_path

# How many ids the error about an unknown one lists.
MOST_NAMED = 50


def repo_id(root: Root) -> str:
    """What callers name a repository by: the root's name, else its folder, else its key."""
    return root.name.strip() or PurePosixPath(root.path).name or str(root.id)


def required_model() -> str:
    """The model that the index is locked to. Raises Conflict INGEST_REQUIRED where nothing has been
    ingested."""
    model = queries.locked_model()
    if model is None:
        raise Conflict("INGEST_REQUIRED: run ingest before vector search", code="INGEST_REQUIRED")
    return model


def roots_for(repositories: Sequence[str], model: str) -> Sequence[Root]:
    """The published roots to search, embedded with `model`: all of them, or those of these ids.

    Raises NotFound REPO_NOT_FOUND, whose details.repo is the id asked for, and Conflict
    INGEST_REQUIRED where one of them waits to be embedded again.
    """
    if not repositories:
        return [root for root in queries.published_roots() if root.model == model]
    asked = _by_name(repositories)
    for root in asked:
        if root.model != model:
            text = f"INGEST_REQUIRED: {repo_id(root)} has yet to be embedded again with {model}"
            raise Conflict(text, code="INGEST_REQUIRED")
    return asked


def _by_name(repositories: Sequence[str]) -> Sequence[Root]:
    """The roots of these ids, in the order of the list of all, so that what is equal is ordered
    alike however it was asked for. Raises NotFound REPO_NOT_FOUND."""
    roots = queries.published_roots()
    asked = [the_one(repository, roots) for repository in repositories]
    return [root for root in roots if root in asked]


def roots_named(repositories: Sequence[str]) -> Sequence[Root]:
    """The published roots of these ids, all of them where none is given, whatever embedded them.

    Raises Conflict INGEST_REQUIRED and NotFound REPO_NOT_FOUND, checked in this order.
    """
    required_model()
    roots = queries.published_roots()
    return [the_one(each, roots) for each in dict.fromkeys(repositories)] or roots


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
    """The payload of ListIngestedRepositories, the last ingested first.

    One that is being ingested again has a `state` beside the contract's fields, so that whoever
    searches knows that the index is about to change.
    """
    states = queries.live_states()
    return {
        "repos": [_wire(root, states.get(root.path)) for root in queries.published_roots()],
        "lockedModelId": queries.locked_model(),
    }


def _wire(root: Root, state: str | None) -> dict[str, Any]:
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
    if state:
        wire["state"] = state
    if mapped.warning:
        wire["hostPathWarning"] = mapped.warning
    return wire
