"""Builds the records of chunks, for the vector store and the parts."""

from collections.abc import Iterable, Iterator
from hashlib import sha256

from apps.code.values import ChunkedFile
from apps.embedding.texts import embedding_text
from apps.embedding.types import EmbeddingText
from apps.index.chunk_ids import chunk_id
from apps.index.models import SourceFile
from apps.index.types import ChunkRecord


def chunk_hash(rel_path: str, index: int, text: str) -> str:
    """Return the sha256 of path, decimal index and text, in hex (docs/contract.md §5.3)."""
    return sha256(f"{rel_path}{index}{text}".encode()).hexdigest()


def records(
    files: Iterable[tuple[SourceFile, ChunkedFile]],
) -> Iterator[tuple[ChunkRecord, EmbeddingText]]:
    """Yield the record and the text to embed of every chunk of some files, in order."""
    for row, file in files:
        for index, chunk in enumerate(file.chunks):
            record = ChunkRecord(
                id=chunk_id(row.document, index),
                source_file=str(row.document),
                run_id=str(row.run_id),
                path=row.path,
                language=row.language,
                sha256=row.sha256,
                index=index,
                chunk=chunk,
            )
            yield record, embedding_text(row.path, chunk)
