"""What the store keeps of each chunk: its id, its text and the facts that a match needs."""

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
    """sha256 of path, decimal index and text (docs/contract.md §5.3)."""
    return sha256(f"{rel_path}{index}{text}".encode()).hexdigest()


def records(
    run: IngestRun, files: Iterable[tuple[SourceFile, ChunkedFile]]
) -> Iterator[tuple[VectorRecord, EmbeddingText]]:
    """Every chunk of some files, in order: what is stored of it, and what is embedded."""
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
