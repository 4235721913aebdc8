"""Chunks as versions before December 2026 stored them: text and facts as metadata of Chroma's rows.

Their roots answer from there until they have been ingested again.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class EarlierChunk(NamedTuple):
    """The text and the facts of a chunk."""

    text: str
    source_file: str  # SourceFile.document
    path: str  # relative to the root
    chunk_index: int
    start_line: int  # 1-based; 0 if it is unknown
    end_line: int  # included
    symbol: str
    names: tuple[str, ...]  # declared by the chunk
    language: str
    file_hash: str


def is_earlier(facts: Mapping[str, Any] | None) -> bool:
    """Whether the metadata of a row are those of an earlier version."""
    return bool(facts) and "record" in (facts or {})


def read(facts: Mapping[str, Any]) -> EarlierChunk:
    """Raises ValueError if no version can have stored these metadata."""
    try:
        text, stored = json.loads(facts["record"])
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"not the metadata of a record: {error!r}") from error
    if not (isinstance(text, str) and isinstance(stored, dict)):
        raise ValueError("not the text and the metadata of a record")
    return EarlierChunk(
        text=text,
        source_file=_text(stored, "sourceFile"),
        path=_text(stored, "relPath"),
        chunk_index=_number(stored, "chunkIndex"),
        start_line=_number(stored, "startLine"),
        end_line=_number(stored, "endLine"),
        symbol=_text(stored, "symbol"),
        names=tuple(_text(stored, "names").split()),
        language=_text(stored, "language"),
        file_hash=_text(stored, "fileHash"),
    )


def _text(stored: Mapping[str, Any], key: str) -> str:
    value = stored.get(key)
    return value if isinstance(value, str) else ""


def _number(stored: Mapping[str, Any], key: str) -> int:
    value = stored.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return max(value, 0)
