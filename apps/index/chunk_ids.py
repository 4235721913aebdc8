"""The ids of chunks in the vector store and the word index: `<SourceFile.document>:<index>`.

Roots that share a store have chunks with equal ids where they have equal files.

Rows of earlier versions have no spans; the ids of their chunks are `<runId>:<relPath>:<index>`.
"""

from collections.abc import Iterator
from typing import Protocol
from uuid import UUID


class FileWithChunks(Protocol):
    """A row of SourceFile, or these columns of one."""

    @property
    def document(self) -> UUID: ...
    @property
    def run_id(self) -> UUID: ...
    @property
    def path(self) -> str: ...
    @property
    def chunks(self) -> int: ...
    @property
    def spans(self) -> bytes | memoryview: ...


def chunk_id(document: UUID | str, index: int) -> str:
    return f"{document}:{index}"


def chunk_ids(file: FileWithChunks) -> Iterator[str]:
    """Return the ids of a file's chunks, in order."""
    prefix = file.document if file.spans else f"{file.run_id}:{file.path}"
    return (chunk_id(prefix, index) for index in range(file.chunks))


def parse(text: str) -> tuple[str, int] | None:
    """Return document and index of an id; None for an id of an earlier version."""
    document, _, index = text.rpartition(":")
    return (document, int(index)) if _is_uuid(document) and index.isdecimal() else None


def _is_uuid(text: str) -> bool:
    try:
        return len(text) == 36 and str(UUID(text)) == text
    except ValueError:
        return False
