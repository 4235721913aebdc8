"""The ids of chunks in the vector store and the word index: `<SourceFile.id>:<index>`.

Rows of earlier versions have no spans; the ids of their chunks are `<runId>:<relPath>:<index>`.
"""

from collections.abc import Iterator
from typing import Protocol
from uuid import UUID


class FileWithChunks(Protocol):
    """A row of SourceFile, or these columns of one."""

    @property
    def id(self) -> UUID: ...
    @property
    def run_id(self) -> UUID: ...
    @property
    def path(self) -> str: ...
    @property
    def chunks(self) -> int: ...
    @property
    def spans(self) -> bytes | memoryview: ...


def chunk_id(source_file: UUID | str, index: int) -> str:
    return f"{source_file}:{index}"


def chunk_ids(file: FileWithChunks) -> Iterator[str]:
    """Return the ids of a file's chunks, in order."""
    prefix = file.id if file.spans else f"{file.run_id}:{file.path}"
    return (chunk_id(prefix, index) for index in range(file.chunks))


def parse(text: str) -> tuple[str, int] | None:
    """Return source file and index of an id; None for an id of an earlier version."""
    source_file, _, index = text.rpartition(":")
    return (source_file, int(index)) if _is_uuid(source_file) and index.isdecimal() else None


def _is_uuid(text: str) -> bool:
    try:
        return len(text) == 36 and str(UUID(text)) == text
    except ValueError:
        return False
