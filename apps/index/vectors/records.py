"""Builds the record of each chunk for the vector store: its id, text and metadata."""

from collections.abc import Iterable, Iterator
from hashlib import sha256

from django.utils import timezone

from apps.code.values import Chunk, ChunkedFile
from apps.core.times import wire_time
from apps.embedding.texts import embedding_text
from apps.embedding.types import EmbeddingText
from apps.index.models import IngestRun, SourceFile
from apps.index.types import VectorRecord


def chunk_hash(rel_path: str, index: int, text: str) -> str:
    """Return the sha256 of path, decimal index and text, in hex (docs/contract.md §5.3)."""
    return sha256(f"{rel_path}{index}{text}".encode()).hexdigest()


def records(
    run: IngestRun, files: Iterable[tuple[SourceFile, ChunkedFile]]
) -> Iterator[tuple[VectorRecord, EmbeddingText]]:
    """Yield the record and the text to embed of every chunk of some files, in order."""
    now = wire_time(timezone.now())
    for row, file in files:
        for index, chunk in enumerate(file.chunks):
            yield _record(run, row, index, chunk, now), embedding_text(row.path, chunk)


def _record(run: IngestRun, row: SourceFile, index: int, chunk: Chunk, now: str) -> VectorRecord:
    return VectorRecord(
        id=f"{run.id}:{row.path}:{index}",
        text=chunk.text,
        metadata={
            "runId": str(run.id),
            "root": run.path,
            "relPath": row.path,
            "sourceFile": str(row.id),
            "fileHash": row.sha256,
            "chunkHash": chunk_hash(row.path, index, chunk.text),
            "chunkIndex": index,
            "startLine": chunk.start_line,
            "endLine": chunk.end_line,
            "symbol": chunk.symbol,
            "names": " ".join(chunk.names),
            "signature": chunk.signature,
            "language": row.language,
            "model": run.model,
            "embeddedAt": now,
        },
    )
