"""Rebuilds word indexes that are missing, broken or of an earlier version.

Words are rebuilt from the vector store, which has the text of every chunk, and symbols from the
unchanged files of the folder. Until then the root is searched by vectors alone. If vectors are
missing too, `integrity` ingests the root again instead.
"""

import logging
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from apps.code.values import ChunkedFile
from apps.core.config import config
from apps.core.errors import InvalidInput, NotFound, Unavailable
from apps.index import freeze, queries
from apps.index.installation import origin_of
from apps.index.lexical import LexicalStore, SegmentWriter, get_lexical
from apps.index.models import IngestRun, Root, SourceFile
from apps.index.parsing import Chunker
from apps.index.root_directory import read_file
from apps.index.types import VectorRecord
from apps.index.vectors.store import get_store
from apps.ingest.runs.batches import READ_AT_ONCE, ROWS_PER_WRITE

logger = logging.getLogger("codeinfo.ingest")


class Interrupted(Exception):
    """A rebuild was interrupted, as a run is queued."""


def roots_needing_rebuild() -> list[Root]:
    """Return the published roots whose word index does not match their vectors. Roots with a run in
    progress and roots with missing vectors are left out."""
    busy = IngestRun.objects.running().values("path")
    roots = Root.objects.published().filter(damage="").exclude(path__in=busy)
    return [root for root in roots if _needs_rebuild(root)]


def _needs_rebuild(root: Root) -> bool:
    vectors = get_store().count(root.id)
    if vectors < root.embedded:
        return False
    if not get_lexical().is_intact(root.id):
        return vectors > 0
    return get_lexical().count(root.id) != vectors or not get_lexical().is_complete(root.id)


@freeze.index.changing()
def rebuild(root: Root, stop: Callable[[], bool]) -> None:
    """Build the word index of a root again. Raises Interrupted soon after `stop` says so, and
    Unavailable where vectors are missing: then nothing has changed."""
    with get_lexical().rebuilding(root.id) as rebuilt:
        words = SegmentWriter(rebuilt, root.id)
        for records in _records(root):
            _check(stop)
            words.add(records)
        words.flush()
        _check_whole(root, rebuilt)
        rebuilt.set_origin(root.id, origin_of(root))
        changed = _add_symbols(root, rebuilt, stop)
        rebuilt.compact(root.id)
        rebuilt.shrink(root.id)
        facts = {"root": root.path, "chunks": rebuilt.count(root.id), "filesChanged": changed}
    if not Root.objects.filter(id=root.id).exists():
        get_lexical().drop(root.id)
    logger.info("word index built again", extra={"context": facts})


def _check_whole(root: Root, rebuilt: LexicalStore) -> None:
    """Raise Unavailable if the vector store returned fewer chunks than were published."""
    published = Root.objects.filter(id=root.id).values_list("embedded", flat=True).first() or 0
    if rebuilt.count(root.id) < published:
        raise Unavailable("vectors are missing", code="CHROMA_UNAVAILABLE")


def _records(root: Root) -> Iterator[list[VectorRecord]]:
    matches = get_store().records(root.id)
    records = (VectorRecord(match.id, match.text, match.metadata) for match in matches)
    while part := list(islice(records, ROWS_PER_WRITE)):
        yield part


def _add_symbols(root: Root, rebuilt: LexicalStore, stop: Callable[[], bool]) -> int:
    """Add the symbols of unchanged files. Return the number of changed files, which have no symbols
    until the next ingest."""
    files = list(queries.live_files(root).ingested())
    changed = 0
    with Chunker(parse_seconds=config().ingest_parse_seconds) as chunker:
        for start in range(0, len(files), READ_AT_ONCE):
            _check(stop)
            part = files[start : start + READ_AT_ONCE]
            unchanged = _unchanged(Path(root.path), part, chunker)
            rebuilt.add_symbols(root.id, unchanged)
            changed += len(part) - len(unchanged)
    return changed


def _unchanged(
    root: Path, files: list[SourceFile], chunker: Chunker
) -> list[tuple[SourceFile, ChunkedFile]]:
    contents = [(row, data) for row in files if (data := _content(root, row)) is not None]
    chunked = chunker.chunk_many([(row.path, data) for row, data in contents])
    pairs = zip((row for row, _ in contents), chunked, strict=True)
    return [(row, file) for row, file in pairs if file.sha256 == row.sha256]


def _content(root: Path, row: SourceFile) -> bytes | None:
    try:
        return read_file(root, row.path)
    except (NotFound, InvalidInput):
        return None


def _check(stop: Callable[[], bool]) -> None:
    if stop():
        raise Interrupted
