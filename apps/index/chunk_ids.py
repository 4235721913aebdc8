"""The ids of chunks in the vector store and the parts: `<SourceFile.document>:<index>`.

Roots that share a store have chunks with equal ids where they have equal files.
"""

from uuid import UUID


def chunk_id(document: UUID | str, index: int) -> str:
    return f"{document}:{index}"


def parse(text: str) -> tuple[str, int] | None:
    """Return document and index of an id; None if it is none of ours."""
    document, _, index = text.rpartition(":")
    return (document, int(index)) if is_uuid(document) and index.isdecimal() else None


def is_uuid(text: str) -> bool:
    """Whether this is a UUID as Python writes it."""
    try:
        return len(text) == 36 and str(UUID(text)) == text
    except ValueError:
        return False
