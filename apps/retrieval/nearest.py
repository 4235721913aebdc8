"""Mode `vector`: the chunks nearest to a query, by the distance of their vectors alone.

Each root has its own collection. The results of all collections are merged by distance, root and
position, which is "the index's order". Collections also contain chunks that a run has written and
not yet published, or has replaced and not yet deleted. So more chunks are requested than needed,
and chunks of files that are not live are dropped.
"""

import heapq
import uuid
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import attrgetter

from apps.core.errors import Unavailable
from apps.embedding.types import Vectors
from apps.index.lexical import ChunkFacts
from apps.index.models import Root, SourceFile
from apps.index.types import Filters, StoredMatch
from apps.index.vectors.store import get_store
from apps.retrieval.query import fits
from apps.retrieval.repositories import lost_vectors, repeated_files, repo_id
from apps.retrieval.results import Match, match_of

# Twice the limit is enough during an ingest, when a collection may contain each chunk twice.
MARGIN = 2
# If too few chunks of a root are live, the next request is this many times larger.
WIDEN = 5

LivePaths = Mapping[uuid.UUID, str]  # by the id of the SourceFile


def nearest(
    roots: Sequence[Root], vector: Vectors, limit: int, filters: Filters
) -> tuple[list[Match], str]:
    """At most `limit` matches, nearest first, and the text of `degraded`.

    `vector`: float32 (dimension,). Leaves out roots whose vectors fail. Raises Unavailable
    CHROMA_UNAVAILABLE if all fail, or if nothing matches and a root has lost vectors.
    """
    each, errors = _matches_by_root(roots, vector, limit, filters)
    if errors and len(errors) == len(roots):
        raise errors[-1][1]
    missing = [f"no answer from {repo_id(root)}" for root, _ in errors]
    missing += filter(None, [lost_vectors(roots)])
    matches = list(islice(heapq.merge(*each, key=attrgetter("distance")), limit))
    if missing and not matches:
        raise Unavailable("; ".join(missing), code="CHROMA_UNAVAILABLE")
    return matches, "; ".join(missing)


def _matches_by_root(
    roots: Sequence[Root], vector: Vectors, limit: int, filters: Filters
) -> tuple[list[list[Match]], list[tuple[Root, Unavailable]]]:
    """For each root its live matches in the order of its collection: at least `limit`, or all it
    has. Also returns the roots that failed, with their errors."""
    store, repeated = get_store(), repeated_files(roots)
    matches: dict[uuid.UUID, list[Match]] = {}
    errors: list[tuple[Root, Unavailable]] = []
    pending, n = list(roots), limit * MARGIN
    while pending:
        stored: dict[uuid.UUID, list[StoredMatch]] = {}
        for root in pending:
            try:
                stored[root.id] = store.query(root.id, vector, n)
            except Unavailable as error:
                errors.append((root, error))
        pending = [root for root in pending if root.id in stored]
        live = _live_paths(match for of_root in stored.values() for match in of_root)
        for root in pending:
            matches[root.id] = [
                match
                for match in _live_matches(root, stored[root.id], live)
                if fits(filters, match.rel_path, match.language)
                and match.rel_path not in repeated.get(root.id, ())
            ]
        # A collection that returned fewer than requested has no more.
        pending = [r for r in pending if len(matches[r.id]) < limit and len(stored[r.id]) >= n]
        n *= WIDEN
    failed = {root.id for root, _ in errors}
    return [matches[root.id] for root in roots if root.id not in failed], errors


def _live_paths(matches: Iterable[StoredMatch]) -> LivePaths:
    """Paths of the live files among those of the matches."""
    ids = {file_id for match in matches if (file_id := _file_id(match))}
    # There may be more ids than one statement takes; `in_bulk` splits them.
    files = SourceFile.objects.live().only("path").in_bulk(ids)
    return {file_id: file.path for file_id, file in files.items()}


def _live_matches(root: Root, stored: Sequence[StoredMatch], live: LivePaths) -> list[Match]:
    return [
        _match(root, match, live[file_id], position)
        for position, match in enumerate(stored)
        if (file_id := _file_id(match)) and file_id in live
    ]


def _match(root: Root, stored: StoredMatch, path: str, position: int) -> Match:
    """The match of a stored chunk, whose metadata may lack any key."""
    facts = ChunkFacts.of(stored)
    facts = facts._replace(path=facts.path or path, id=facts.id or f"chunk-{position}")
    model_id = stored.facts.model
    text = stored.text or ""
    return match_of(root, facts, text, score=stored.distance, model_id=model_id)


def _file_id(match: StoredMatch) -> uuid.UUID | None:
    try:
        return uuid.UUID(match.facts.source_file)
    except ValueError:
        return None
