"""The roots that a search covers, and missing data."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

from apps.core.errors import Conflict, NotFound
from apps.core.values.times import wire_time
from apps.index import queries
from apps.index.changes import unreadable
from apps.index.models import Root
from apps.index.paths import map_path
from apps.index.types import Area, Filters

# Ids that the error about an unknown id lists.
MAX_NAMED = 50
WORDS_ONLY = "words only"
INCOMPLETE = "The latest ingest did not complete."


class Repeated(NamedTuple):
    """A file that another root answers for.

    is_equal: to the version there
    folder: the path of that root with a slash, if the file has the same path there; "" for a root
        inside another one
    """

    language: str
    is_equal: bool
    folder: str = ""


# By the id of a root and the path (`overlaps.repeated_files`).
RepeatedFiles = Mapping[UUID, Mapping[str, Repeated]]


def repo_id(root: Root) -> str:
    """The id of a repository on the wire (contract.md §4.1): the root's name, else the name of its
    folder, else its primary key."""
    return root.name.strip() or PurePosixPath(root.path).name or str(root.id)


def required_model() -> str:
    """The model that the index is locked to. Raises Conflict INGEST_REQUIRED for an empty index."""
    model = queries.locked_model()
    if model is None:
        raise Conflict("INGEST_REQUIRED: run ingest before vector search", code="INGEST_REQUIRED")
    return model


def roots_for(repositories: Sequence[str], model: str) -> Sequence[Root]:
    """The published roots that are embedded with `model`: all, or those with these ids.

    Raises NotFound REPO_NOT_FOUND with details.repo, and Conflict INGEST_REQUIRED if one of these
    ids is embedded with another model.
    """
    if not repositories:
        return [root for root in queries.published_roots() if root.model == model]
    named = _by_name(repositories)
    for root in named:
        if root.model != model:
            text = f"INGEST_REQUIRED: {repo_id(root)} must be embedded again with {model}"
            raise Conflict(text, code="INGEST_REQUIRED")
    return named


def _by_name(repositories: Sequence[str]) -> Sequence[Root]:
    """The roots with these ids, in the order of all roots: ties do not depend on the order of ids.

    Raises NotFound REPO_NOT_FOUND.
    """
    roots = queries.published_roots()
    named = [find_root(repository, roots) for repository in repositories]
    return [root for root in roots if root in named]


def roots_named(repositories: Sequence[str]) -> Sequence[Root]:
    """The published roots with these ids, or all, whatever model embedded them: by id, as what is
    listed root by root must keep its order when a root is ingested again.

    Raises Conflict INGEST_REQUIRED and NotFound REPO_NOT_FOUND, checked in this order.
    """
    required_model()
    roots = queries.published_roots()
    named = {root.id: root for root in (find_root(name, roots) for name in repositories)}
    return sorted(named.values() or roots, key=lambda root: (repo_id(root), root.path))


def find_root(repository: str, roots: Sequence[Root] | None = None) -> Root:
    """The published root with exactly this id, otherwise in any case, otherwise with this folder.
    If several have it, the last ingested.

    Raises NotFound REPO_NOT_FOUND with details.repo; the message lists the ids that exist.
    """
    roots = queries.published_roots() if roots is None else roots
    for root in roots:
        if repo_id(root) == repository:
            return root
    for root in roots:
        if is_named(root, repository):
            return root
    text = f"REPO_NOT_FOUND: no repository {repository!r} is ingested. {_list_ids(roots)}"
    raise NotFound(text, code="REPO_NOT_FOUND", details={"repo": repository})


def with_ids(areas: Iterable[Area]) -> tuple[Area, ...]:
    """The areas with the ids of their repositories, which may be written as `find_root` takes
    them. Those of unknown repositories stay: they hold no file."""
    roots = queries.published_roots()

    def with_id(area: Area) -> Area:
        if not area.repository:
            return area
        try:
            return area._replace(repository=repo_id(find_root(area.repository, roots)))
        except NotFound:
            return area

    return tuple(map(with_id, areas))


def is_named(root: Root, text: str) -> bool:
    """Return True if a text is the id of a root, the name of its folder, both in any case, or the
    path of its folder."""
    mapped = map_path(root)
    if text.rstrip("/") in (mapped.container_path, mapped.host_path):
        return True
    return text.lower() in (repo_id(root).lower(), PurePosixPath(root.path).name.lower())


def _list_ids(roots: Sequence[Root]) -> str:
    ids = [repr(repo_id(root)) for root in roots]
    if not ids:
        return "Nothing is ingested yet."
    more = f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else ""
    return f"Known ids: {', '.join(ids[:MAX_NAMED])}{more}."


# --- missing data ---------------------------------------------------------------------------------


def lost_parts(roots: Sequence[Root]) -> str:
    """The text of `degraded` for roots whose index can be read in part only; "" if there are
    none."""
    if not roots:
        return ""
    names = ", ".join(sorted(map(repo_id, roots)))
    return f"a part of the index is lost: {names}"


def _is_current(root: Root) -> bool:
    """Return True if no other generation of the root was published in the meantime."""
    return Root.objects.filter(id=root.id, generation=root.generation).exists()


def partly_ingested(roots: Iterable[Root]) -> str:
    """Return of which of these roots a first ingest has published a part, a sentence each; "" for
    none."""
    return " ".join(
        f"{repo_id(root)}: {root.files:,} of {root.awaited_files:,} files are ingested so far, the "
        "last changed first."
        for root in roots
        if root.awaited_files is not None
    )


def damages(roots: Sequence[Root]) -> str:
    """The text of `degraded` for damaged roots; "" if there are none."""
    return "; ".join(f"{repo_id(root)}: {root.damage}" for root in roots if root.damage)


def still_current(unread: Iterable[Root]) -> list[Root]:
    """The roots of passages, or files, that cannot be read, without those that a later generation
    may have replaced: they were not lost."""
    unread = list(unread)
    current = {root.id for root in dict.fromkeys(unread) if _is_current(root)}
    return [root for root in unread if root.id in current]


def lost_texts(unread: Iterable[Root], what: str = "passage") -> str:
    """The text of `degraded` for passages, or files, that cannot be read; "" if there are none.

    unread: the root of each, as `still_current` returns them
    """
    return "; ".join(
        f"the text of {count} {what}{'s' * (count > 1)} is missing: {repo_id(root)}"
        for root, count in Counter(unread).items()
    )


def have_checked(unread: Collection[UUID]) -> None:
    """Have the worker look into roots of which something could not be read. Another process may
    have found that, whose events the worker does not get."""
    for root in queries.published_roots() if unread else ():
        if root.id in unread:
            unreadable(root.damage)


# --- the list of repositories ---------------------------------------------------------------------


def list_repositories(areas: Sequence[Area] = ()) -> dict[str, Any]:
    """The payload of ListIngestedRepositories (contract.md §4.1), the last ingested first.

    A repository that is being ingested also has a `state`, which is not in the contract. An error
    may name any file: where only some may be known, it says INCOMPLETE.
    """
    states = queries.live_states()
    repos = [_wire(root, states.get(root.path)) for root in queries.published_roots()]
    filters = Filters(areas=tuple(areas))
    for repo in repos:
        if repo["lastError"] and filters.within(repo["id"]).areas:
            repo["lastError"] = INCOMPLETE
    return {"repos": repos, "lockedModelId": queries.locked_model()}


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
