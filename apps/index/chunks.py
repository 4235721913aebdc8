"""Chunks by id: their facts and their texts.

The facts are in the word index. While it lacks a chunk (it is being rebuilt), the rows of files
tell where the chunk is, and symbol and names are unknown. The texts are in the text store.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from apps.code.chunking import decode, lines_of
from apps.core.errors import CodeinfoError, Unavailable
from apps.index import chunk_ids, spans
from apps.index.changes import check_due
from apps.index.lexical import ChunkFacts, get_lexical
from apps.index.models import Root, SourceFile
from apps.index.records import chunk_hash
from apps.index.root_directory import read_file
from apps.index.texts import get_texts

log = logging.getLogger("codeinfo.index")


class StoredChunk(NamedTuple):
    """A chunk with its text."""

    facts: ChunkFacts
    text: str

    @property
    def hash(self) -> str:
        """The chunk's id on the wire (docs/contract.md §5.3)."""
        return chunk_hash(self.facts.path, self.facts.chunk_index, self.text)


def read_chunks(ids: Mapping[UUID, Sequence[str]]) -> dict[UUID, dict[str, StoredChunk]]:
    """Return store → chunk id → chunk; `ids` is store → chunk ids. A store is `Root.store`. Chunks
    that no store has are left out."""
    chunks: dict[UUID, dict[str, StoredChunk]] = {}
    for store, of_root in ids.items():
        facts = _word_facts(store, of_root)
        facts |= row_facts(chunk_id for chunk_id in of_root if chunk_id not in facts)
        chunks[store] = _with_texts(store, facts)
    return chunks


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


def _with_texts(store: UUID, facts: Mapping[str, ChunkFacts]) -> dict[str, StoredChunk]:
    """Return chunk id → chunk with its text. If the text store lacks a text, it is that of an
    unchanged file on the disk, and the ingest worker checks the stores. Other chunks are left
    out."""
    keys = {fact.sha256 for fact in facts.values()}
    try:
        texts = get_texts().read(keys)
    except Unavailable as error:
        log.warning("no texts", extra={"context": {"reason": error.message}})
        texts = {}
    if missing := keys - texts.keys():
        check_due.set()
        files = {fact.sha256: fact.path for fact in facts.values() if fact.sha256 in missing}
        texts |= _texts_on_disk(store, files)
    return {
        key: StoredChunk(fact, texts[fact.sha256][fact.offset : fact.offset + fact.length])
        for key, fact in facts.items()
        if fact.sha256 in texts
    }


def _texts_on_disk(store: UUID, files: Mapping[str, str]) -> dict[str, str]:
    """Return key → text, of the files (key → path) that are unchanged in a root of a store."""
    texts: dict[str, str] = {}
    for root in Root.objects.filter(store=store):
        on_disk = {
            key: unchanged_text(Path(root.path), path, key)
            for key, path in files.items()
            if key not in texts
        }
        texts |= {key: text for key, text in on_disk.items() if text is not None}
    return texts


def unchanged_text(root: Path, path: str, key: str) -> str | None:
    """Return the text of a file as the text store has it; None if the file is gone, has changed or
    cannot be read."""
    try:
        data = read_file(root, path)
    except CodeinfoError:
        return None
    return "\n".join(lines_of(decode(data))) if sha256(data).hexdigest() == key else None


def _word_facts(store: UUID, ids: Sequence[str]) -> dict[str, ChunkFacts]:
    try:
        return get_lexical().facts(store, ids)
    except Unavailable:
        return {}  # the search reports it


def _facts(chunk_id: str, row: SourceFile, index: int, span: spans.Span) -> ChunkFacts:
    return ChunkFacts(
        id=chunk_id,
        source_file=str(row.document),
        path=row.path,
        chunk_index=index,
        start_line=span.start_line,
        end_line=span.end_line,
        symbol="",
        names=(),
        signature="",
        language=row.language,
        sha256=row.sha256,
        offset=span.offset,
        length=span.length,
    )
