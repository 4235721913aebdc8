"""Builds the records of chunks, for the vector store and the parts."""

from collections.abc import Iterable, Iterator
from hashlib import sha256

from apps.code.bulk import have_vectors
from apps.code.values import ChunkedFile
from apps.core.config import config
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
) -> Iterator[tuple[ChunkRecord, EmbeddingText | None]]:
    """Yield the record and the text to embed of every chunk of some files, in order. Without a
    text, the chunk has no vector."""
    for row, file in files:
        embedded = embedded_chunks(file)
        document, run = str(row.document), str(row.run_id)
        for index, (chunk, is_embedded) in enumerate(zip(file.chunks, embedded, strict=True)):
            record = ChunkRecord(
                id=chunk_id(document, index),
                source_file=document,
                run_id=run,
                path=row.path,
                language=row.language,
                sha256=row.sha256,
                index=index,
                chunk=chunk,
            )
            yield record, embedding_text(row.path, chunk) if is_embedded else None


def embedded_chunks(file: ChunkedFile) -> list[bool]:
    """Whether each chunk of a file gets a vector. The types of INGEST_INCLUDE all do."""
    all_types = bool(config().ingest_include)
    return have_vectors(file.path, file.text, file.chunks, all_types=all_types)
