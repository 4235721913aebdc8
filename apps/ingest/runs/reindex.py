"""Word indexes that are missing, broken or of an earlier version are built again.

Words come from the vector store, which has the text of every chunk; symbols from the files
themselves, where they have not changed since. Until then such a root answers by its vectors alone.
Where vectors are missing too, its words stay as they are: `integrity` has it ingested again.
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
from apps.index.lexical import LexicalStore, get_lexical
from apps.index.models import IngestRun, Root, SourceFile
from apps.index.parsing import Chunker
from apps.index.root_directory import read_file
from apps.index.types import VectorRecord
from apps.index.vectors.store import get_store
from apps.ingest.runs.batches import READ_AT_ONCE, ROWS_PER_WRITE

logger = logging.getLogger("codeinfo.ingest")


class Interrupted(Exception):
    """There is something better to do than to build an index again."""


def roots_needing_rebuild() -> list[Root]:
    """The published roots, none of them under way, whose words are not those of their vectors, and
    whose vectors are all there."""
    busy = IngestRun.objects.running().values("path")
    roots = Root.objects.published().filter(damage="").exclude(path__in=busy)
    return [root for root in roots if _is_wanting(root)]


def _is_wanting(root: Root) -> bool:
    there = get_store().count(root.id)
    if there < root.embedded:
        return False
    if not get_lexical().is_intact(root.id):
        return there > 0
    return get_lexical().count(root.id) != there


@freeze.index.changing()
def rebuild(root: Root, stop: Callable[[], bool]) -> None:
    """Build the word index of a root again. Raises Interrupted soon after `stop` says so, and
    Unavailable where vectors are missing: then nothing has changed."""
    with get_lexical().rebuilding(root.id) as fresh:
        for records in _records(root):
            _check(stop)
            fresh.add(root.id, records)
        _check_whole(root, fresh)
        fresh.set_origin(root.id, origin_of(root))
        changed = _add_symbols(root, fresh, stop)
        fresh.compact(root.id)
        facts = {"root": root.path, "chunks": fresh.count(root.id), "filesChanged": changed}
    if not Root.objects.filter(id=root.id).exists():
        get_lexical().drop(root.id)
    logger.info("word index built again", extra={"context": facts})


def _check_whole(root: Root, fresh: LexicalStore) -> None:
    """Raises Unavailable where fewer chunks came out of the vector store than were published."""
    published = Root.objects.filter(id=root.id).values_list("embedded", flat=True).first() or 0
    if fresh.count(root.id) < published:
        raise Unavailable("vectors are missing", code="CHROMA_UNAVAILABLE")


def _records(root: Root) -> Iterator[list[VectorRecord]]:
    found = get_store().records(root.id)
    records = (VectorRecord(match.id, match.text, match.metadata) for match in found)
    while some := list(islice(records, ROWS_PER_WRITE)):
        yield some


def _add_symbols(root: Root, fresh: LexicalStore, stop: Callable[[], bool]) -> int:
    """How many files have changed since: those are left without symbols until the next ingest."""
    files = list(queries.live_files(root).ingested())
    changed = 0
    with Chunker(parse_seconds=config().ingest_parse_seconds) as chunker:
        for start in range(0, len(files), READ_AT_ONCE):
            _check(stop)
            some = files[start : start + READ_AT_ONCE]
            same = _unchanged(Path(root.path), some, chunker)
            fresh.add_symbols(root.id, same)
            changed += len(some) - len(same)
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
