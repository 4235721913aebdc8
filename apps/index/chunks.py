"""Chunks by id: their facts and their texts.

The facts are in the parts of the index. Of a chunk that no readable part has, the rows of files
tell where it is, and symbol and names are unknown. The texts are in the text store.
"""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from apps.code.chunking import decode, digest_of, is_utf8, lines_of
from apps.core.errors import CodeinfoError, Unavailable
from apps.core.system.mapping import read_again
from apps.index import chunk_ids, spans, unread
from apps.index.changes import unreadable
from apps.index.mapped import lookups
from apps.index.mapped.files import Damaged
from apps.index.mapped.opened import opened_roots
from apps.index.models import Root, SourceFile
from apps.index.records import chunk_hash
from apps.index.root_directory import read_content
from apps.index.texts import get_texts
from apps.index.types import ChunkFacts

log = logging.getLogger("codeinfo.index")


class StoredChunk(NamedTuple):
    """A chunk with its text."""

    facts: ChunkFacts
    text: str

    @property
    def hash(self) -> str:
        """The chunk's id on the wire (docs/contract.md §5.3)."""
        return chunk_hash(self.facts.path, self.facts.chunk_index, self.text)


def read_chunks(wanted: Iterable[tuple[Root, str]]) -> dict[tuple[UUID, str], StoredChunk]:
    """Return root id and chunk id → chunk, of roots and chunk ids. Chunks of no file are left out,
    and so are those whose text cannot be read."""
    by_root: dict[UUID, tuple[Root, dict[str, None]]] = {}
    for root, chunk_id in wanted:
        by_root.setdefault(root.id, (root, {}))[1][chunk_id] = None
    found = [
        (root, fact)
        for root, ids in by_root.values()
        for fact in _facts_of(root, list(ids)).values()
    ]
    texts = stored_texts({fact.sha256 for _, fact in found})
    texts |= unchanged_texts(
        (root, fact.path, fact.sha256) for root, fact in found if fact.sha256 not in texts
    )
    return {
        (root.id, fact.id): StoredChunk(fact, text[fact.offset : fact.offset + fact.length])
        for root, fact in found
        if (text := texts.get(fact.sha256)) is not None
    }


@read_again
def _facts_of(root: Root, ids: Sequence[str]) -> dict[str, ChunkFacts]:
    try:
        facts = lookups.facts(opened_roots.get(root).parts, ids)
    except Damaged:
        unread.part_lost(root)
        facts = {}
    return facts | row_facts(chunk_id for chunk_id in ids if chunk_id not in facts)


def row_facts(ids: Iterable[str]) -> dict[str, ChunkFacts]:
    """Return chunk id → facts, as far as rows of files tell them."""
    wanted: dict[str, list[tuple[str, int]]] = {}
    for chunk_id in ids:
        if parsed := chunk_ids.parse(chunk_id):
            wanted.setdefault(parsed[0], []).append((chunk_id, parsed[1]))
    facts: dict[str, ChunkFacts] = {}
    if not wanted:
        return facts
    rows = SourceFile.objects.filter(document__in=list(wanted)).order_by()
    # Rows with the same document, of roots that share it, tell the same.
    fields = rows.only("document", "path", "language", "sha256", "spans")
    for row in {row.document: row for row in fields}.values():
        try:
            of_row = spans.unpack(row.spans)
        except ValueError:
            log.warning("spans unreadable", extra={"context": {"file": row.path}})
            continue
        for chunk_id, index in wanted[str(row.document)]:
            if index < len(of_row):
                facts[chunk_id] = _facts(chunk_id, row, index, of_row[index])
    return facts


def stored_texts(keys: Iterable[str]) -> dict[str, str]:
    """Return key → text of those that the text store has."""
    try:
        return get_texts().read(keys)
    except Unavailable as error:
        log.warning("no texts", extra={"context": {"reason": error.message}})
        return {}


def unchanged_texts(files: Iterable[tuple[Root, str, str]]) -> dict[str, str]:
    """Return key → text of files that the text store lacks, each given by its root, path and key:
    those that are unchanged on the disk. The ingest worker checks the stores."""
    texts: dict[str, str] = {}
    for root, path, key in dict.fromkeys(files):
        unreadable(root.damage)
        if key not in texts and (text := unchanged_text(Path(root.path), path, key)) is not None:
            texts[key] = text
    return texts


def unchanged_text(root: Path, path: str, key: str) -> str | None:
    """Return the text of a file as the text store has it; None if the file is gone, has changed or
    cannot be read."""
    try:
        data = read_content(root, path)
    except CodeinfoError:
        return None
    encoding = "" if is_utf8(data) else _encoding_of(key)
    return "\n".join(lines_of(decode(data, encoding))) if digest_of(data, encoding) == key else None


def _encoding_of(key: str) -> str:
    rows = SourceFile.objects.filter(sha256=key).order_by()
    return rows.values_list("encoding", flat=True).first() or ""


def _facts(chunk_id: str, row: SourceFile, index: int, span: spans.Span) -> ChunkFacts:
    return ChunkFacts(
        id=chunk_id,
        source_file=str(row.document),
        path=row.path,
        chunk_index=index,
        symbol="",
        names=(),
        signature="",
        language=row.language,
        sha256=row.sha256,
        **span._asdict(),
    )
