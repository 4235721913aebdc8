"""Rebuilds word indexes that are missing, broken or of another format.

An index is rebuilt for all roots that share it: the texts of their files are chunked again. Until
then the root is searched by vectors alone. If vectors or texts are missing too, `integrity` ingests
the root again instead.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from apps.code.values import Chunk, ChunkedFile
from apps.core.errors import CodeinfoError, Unavailable
from apps.embedding.catalogue import get_embedder
from apps.index import freeze, queries, sharing, spans
from apps.index.installation import origin_of
from apps.index.lexical import LexicalStore, SegmentWriter, get_lexical
from apps.index.models import IngestRun, Root, SourceFile
from apps.index.parsing import Chunker
from apps.index.records import records
from apps.index.texts import get_texts
from apps.index.vectors.store import get_store
from apps.ingest.runs.batches import READ_AT_ONCE, fitted

logger = logging.getLogger("codeinfo.ingest")


class Interrupted(Exception):
    """A rebuild was interrupted, as a run is queued."""


def roots_needing_rebuild() -> list[Root]:
    """Return the published roots whose word index does not match their vectors. Roots with a run in
    progress and roots with missing vectors are left out."""
    busy = set(IngestRun.objects.running().values_list("path", flat=True))
    roots = list(Root.objects.published())
    excluded = {root.store for root in roots if root.damage or root.path in busy}
    by_store = {root.store: root for root in roots if root.store not in excluded}
    return [root for root in by_store.values() if _needs_rebuild(root)]


def _needs_rebuild(root: Root) -> bool:
    vectors = get_store().count(root.store)
    if vectors < sharing.stored_chunks(root):
        return False
    # A run writes to one file, and a large one takes seconds to read.
    if not get_lexical().is_intact(root.store, since_written=True):
        return vectors > 0
    return get_lexical().count(root.store) != vectors or not get_lexical().is_complete(root.store)


@freeze.index.changing()
def rebuild(root: Root, stop: Callable[[], bool]) -> None:
    """Build the word index of a root, and of those that share it, again. Raises Interrupted soon
    after `stop` says so, and Unavailable where vectors or texts are missing: then nothing has
    changed."""
    with get_lexical().rebuilding(root.store) as rebuilt:
        _add_files(root, rebuilt, stop)
        _check_whole(root, rebuilt)
        rebuilt.set_origin(root.store, origin_of(root))
        rebuilt.compact(root.store)
        rebuilt.shrink(root.store)
        facts = {"root": root.path, "chunks": rebuilt.count(root.store)}
    if not sharing.roots_of([root.store]):
        get_lexical().drop(root.store)
    logger.info("word index built again", extra={"context": facts})


def _check_whole(root: Root, rebuilt: LexicalStore) -> None:
    """Raise Unavailable if there are fewer chunks than were published."""
    if rebuilt.count(root.store) < sharing.stored_chunks(root):
        raise Unavailable("vectors or texts are missing", code="CHROMA_UNAVAILABLE")


def _add_files(root: Root, rebuilt: LexicalStore, stop: Callable[[], bool]) -> None:
    # One row of each document.
    by_document = {
        row.document: row
        for sharer in sharing.roots_of([root.store])
        for row in queries.live_files(sharer).ingested().filter(chunks__gt=0)
    }
    files = list(by_document.values())
    max_tokens = _max_tokens(root)
    words = SegmentWriter(rebuilt, root.store)
    with Chunker() as chunker:
        for start in range(0, len(files), READ_AT_ONCE):
            _check(stop)
            pairs = _chunked(files[start : start + READ_AT_ONCE], chunker, max_tokens)
            made = [record for record, _ in records(pairs)]
            if any(row.embedded < row.chunks for row, _ in pairs):
                embedded = set(get_store().audit(root.store, [record.id for record in made])[0])
                made = [record for record in made if record.id in embedded]
            words.add(made)
            rebuilt.add_symbols(root.store, pairs)
    words.flush()


def _max_tokens(root: Root) -> int | None:
    """The limit of the root's embedder; None if it has none, or is unavailable."""
    try:
        embedder = get_embedder(root.model)
    except CodeinfoError:
        return None
    embedder.close()
    return embedder.max_tokens


def _chunked(
    rows: Sequence[SourceFile], chunker: Chunker, max_tokens: int | None
) -> list[tuple[SourceFile, ChunkedFile]]:
    """The chunks of files whose text exists, as they were embedded."""
    texts = get_texts().read({row.sha256 for row in rows})
    readable = [row for row in rows if row.sha256 in texts]
    files = chunker.chunk_many([(row.path, texts[row.sha256].encode()) for row in readable])
    return [
        (row, _as_embedded(row, file, max_tokens))
        for row, file in zip(readable, files, strict=True)
    ]


def _as_embedded(row: SourceFile, file: ChunkedFile, max_tokens: int | None) -> ChunkedFile:
    """The file with the chunks that have vectors. Their symbols are unknown if it is parsed in
    another way than by its run, which may have failed to parse it."""
    file = fitted(file, max_tokens)
    embedded = spans.unpack(row.spans)
    if [spans.span_of(chunk) for chunk in file.chunks] == embedded:
        return file
    chunks = tuple(
        Chunk(
            file.text[span.offset : span.offset + span.length],
            span.start_line,
            span.end_line,
            offset=span.offset,
        )
        for span in embedded
    )
    return replace(file, chunks=chunks)


def _check(stop: Callable[[], bool]) -> None:
    if stop():
        raise Interrupted
