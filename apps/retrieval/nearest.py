"""Mode `vector`: the rows nearest to a question, by the distance of their vectors alone.

Each root has its own collection. Each is asked, and the lists are merged by distance, root and
position; that is what "the index's order" means. What a run has written but not yet published, or
has replaced and not yet deleted, is in the collections too, so more is asked for than is wanted and
every row whose source file is not live is dropped.
"""

import heapq
import uuid
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import attrgetter

from apps.core.errors import Unavailable
from apps.embedding.types import Vectors
from apps.index.models import Root, SourceFile
from apps.index.types import Filters, StoredMatch
from apps.index.vectors.store import get_store
from apps.retrieval.degraded import lost_vectors
from apps.retrieval.overlaps import repeated_files
from apps.retrieval.repositories import repo_id
from apps.retrieval.rows import row_of_match, text_of
from apps.retrieval.scope import fits
from apps.retrieval.types import Found, Row

# Twice the limit is enough while a root is re-ingested, when each chunk may be there twice.
MARGIN = 2
# A root that keeps too few all the same is asked for this many times more, until it has no more.
WIDEN = 5

LiveFiles = Mapping[uuid.UUID, str]


def nearest(roots: Sequence[Root], vector: Vectors, limit: int, filters: Filters) -> Found:
    """At most `limit` rows of these roots, nearest first.

    A root whose vectors fail is left out, and `degraded` says so. Raises Unavailable
    CHROMA_UNAVAILABLE where all fail, or where nothing is found and vectors are known to be lost.
    """
    each, errors = _rows_of_each(roots, vector, limit, filters)
    if errors and len(errors) == len(roots):
        raise errors[-1][1]
    missing = [f"no answer from {repo_id(root)}" for root, _ in errors]
    missing += filter(None, [lost_vectors(roots)])
    rows = list(islice(heapq.merge(*each, key=attrgetter("distance")), limit))
    if missing and not rows:
        raise Unavailable("; ".join(missing), code="CHROMA_UNAVAILABLE")
    return Found(rows, degraded="; ".join(missing))


def _rows_of_each(
    roots: Sequence[Root], vector: Vectors, limit: int, filters: Filters
) -> tuple[list[list[Row]], list[tuple[Root, Unavailable]]]:
    """Each root's live rows in its collection's order: `limit` of them, or all it has; and the
    roots that failed."""
    store, repeated = get_store(), repeated_files(roots)
    rows: dict[uuid.UUID, list[Row]] = {}
    errors: list[tuple[Root, Unavailable]] = []
    pending, n = list(roots), limit * MARGIN
    while pending:
        found: dict[uuid.UUID, list[StoredMatch]] = {}
        for root in pending:
            try:
                found[root.id] = store.query(root.id, vector, n)
            except Unavailable as error:
                errors.append((root, error))
        pending = [root for root in pending if root.id in found]
        live = _live_files(match for matches in found.values() for match in matches)
        for root in pending:
            rows[root.id] = [
                row
                for row in _live_rows(root, found[root.id], live)
                if fits(filters, row.rel_path, row.language)
                and row.rel_path not in repeated.get(root.id, ())
            ]
        # A collection that gave fewer than it was asked for has no more to give.
        pending = [r for r in pending if len(rows[r.id]) < limit and len(found[r.id]) >= n]
        n *= WIDEN
    failed = {root.id for root, _ in errors}
    return [rows[root.id] for root in roots if root.id not in failed], errors


def _live_files(matches: Iterable[StoredMatch]) -> LiveFiles:
    """Path by id of those source files of the matches that are published now."""
    ids = {file_id for match in matches if (file_id := _file_id(match))}
    # Many roots give more ids than one statement takes: `in_bulk` asks in pieces.
    files = SourceFile.objects.live().only("path").in_bulk(ids)
    return {file_id: file.path for file_id, file in files.items()}


def _live_rows(root: Root, matches: Sequence[StoredMatch], live: LiveFiles) -> list[Row]:
    return [
        row_of_match(root, match, live[file_id], position)
        for position, match in enumerate(matches)
        if (file_id := _file_id(match)) and file_id in live
    ]


def _file_id(match: StoredMatch) -> uuid.UUID | None:
    try:
        return uuid.UUID(text_of(match.metadata, "sourceFile"))
    except ValueError:
        return None
