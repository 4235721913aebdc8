"""The seam in front of the pipeline: which chunks of the index may answer a question, in order.

Each root has its own collection. Each is asked, and the lists are merged by distance, root and
position; that is what "the index's order" means. What a run has written but not yet published, or
has replaced and not yet deleted, is in the collections too, so more is asked for than is wanted and
every row whose source file is not live is dropped.
"""

import heapq
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any

from apps.ingest.embedding import get_embedder
from apps.ingest.models import Root, SourceFile
from apps.ingest.paths import map_path
from apps.ingest.types import StoredMatch, Vectors
from apps.ingest.vectors.store import get_store
from apps.retrieval.repositories import repo_id, required_lock, roots_for
from apps.retrieval.types import Row, SearchQuery
from codeinfo.errors import InvalidInput, NotFound, Unavailable

# Twice the limit is enough while a root is re-ingested, when each chunk may be there twice.
MARGIN = 2
# A root that keeps too few all the same is asked for this many times more, until it has no more.
WIDEN = 5

LiveFiles = Mapping[uuid.UUID, str]


def candidates(query: SearchQuery) -> list[Row]:
    """At most `query.limit` rows, nearest first.

    Raises, in this order: Conflict INGEST_REQUIRED, NotFound REPO_NOT_FOUND, Unavailable
    EMBED_MODEL_MISSING, then Unavailable for whatever the embedder's server or the store cannot do.
    """
    lock = required_lock()
    roots = roots_for(query.repository, lock.model)
    vector = _embedded(query.text, lock.model)
    rows = _rows_of_each(roots, vector, query.limit)
    return list(islice(heapq.merge(*rows, key=attrgetter("distance")), query.limit))


def _embedded(text: str, model_id: str) -> Vectors:
    """The question's vector, by the model that the index is locked to."""
    try:
        return get_embedder(model_id).embed_query(text)
    except (InvalidInput, NotFound) as error:
        # The lock names a model that this installation no longer knows.
        raise Unavailable(error.message, code="EMBED_MODEL_MISSING", retryable=False) from error


def _rows_of_each(roots: Sequence[Root], vector: Vectors, limit: int) -> list[list[Row]]:
    """Each root's live rows in its collection's order: `limit` of them, or all it has."""
    store = get_store()
    rows: dict[uuid.UUID, list[Row]] = {}
    pending, n = list(roots), limit * MARGIN
    while pending:
        found = {root.id: store.query(root.id, vector, n) for root in pending}
        live = _live_files(match for matches in found.values() for match in matches)
        for root in pending:
            rows[root.id] = _live_rows(root, found[root.id], live)
        # A collection that gave fewer than it was asked for has no more to give.
        pending = [r for r in pending if len(rows[r.id]) < limit and len(found[r.id]) >= n]
        n *= WIDEN
    return [rows[root.id] for root in roots]


def _live_files(matches: Iterable[StoredMatch]) -> LiveFiles:
    """Path by id of those source files of the matches that are published now."""
    ids = {file_id for match in matches if (file_id := _file_id(match))}
    # Many roots give more ids than one statement takes: `in_bulk` asks in pieces.
    files = SourceFile.objects.live().only("path").in_bulk(ids)
    return {file_id: file.path for file_id, file in files.items()}


def _live_rows(root: Root, matches: Sequence[StoredMatch], live: LiveFiles) -> list[Row]:
    return [
        _row(root, match, live[file_id], position)
        for position, match in enumerate(matches)
        if (file_id := _file_id(match)) and file_id in live
    ]


def _row(root: Root, match: StoredMatch, stored_path: str, position: int) -> Row:
    """A stored match as a candidate. Its metadata may lack anything: nothing here insists on it."""
    meta = match.metadata
    rel_path = _text(meta, "relPath") or stored_path
    mapped = map_path(root, rel_path)
    return Row(
        repo=repo_id(root),
        rel_path=rel_path,
        container_path=mapped.container_path,
        host_path=mapped.host_path,
        host_path_warning=mapped.warning,
        chunk=match.text or "",
        chunk_id=_text(meta, "chunkHash") or match.id or f"chunk-{position}",
        model_id=_text(meta, "model") or root.model,
        score=_finite(match.distance),
        start_line=_line(meta, "startLine"),
        end_line=_line(meta, "endLine"),
        symbol=_text(meta, "symbol"),
        language=_text(meta, "language"),
    )


def _file_id(match: StoredMatch) -> uuid.UUID | None:
    try:
        return uuid.UUID(_text(match.metadata, "sourceFile"))
    except ValueError:
        return None


def _text(meta: Mapping[str, Any], key: str) -> str:
    value = meta.get(key)
    return value if isinstance(value, str) else ""


def _line(meta: Mapping[str, Any], key: str) -> int | None:
    value = meta.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _finite(distance: float | None) -> float | None:
    """JSON has no NaN, and an infinite distance is none."""
    return distance if distance is not None and math.isfinite(distance) else None
