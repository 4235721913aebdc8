"""Candidates as rows: from what the stores hold of a chunk to what the pipeline takes."""

import math
from collections.abc import Mapping
from typing import Any

from apps.index.lexical import ChunkFacts
from apps.index.models import Root
from apps.index.paths import map_path
from apps.index.types import StoredMatch
from apps.retrieval.repositories import repo_id
from apps.retrieval.types import MatchedBy, Row


def row_of_match(root: Root, match: StoredMatch, stored_path: str, position: int) -> Row:
    """A stored match as a candidate. Its metadata may lack anything: nothing here insists on it."""
    meta = match.metadata
    rel_path = text_of(meta, "relPath") or stored_path
    mapped = map_path(root, rel_path)
    return Row(
        repo=repo_id(root),
        rel_path=rel_path,
        container_path=mapped.container_path,
        host_path=mapped.host_path,
        host_path_warning=mapped.warning,
        chunk=match.text or "",
        chunk_id=text_of(meta, "chunkHash") or match.id or f"chunk-{position}",
        model_id=text_of(meta, "model") or root.model,
        score=_finite(match.distance),
        start_line=_line(meta, "startLine"),
        end_line=_line(meta, "endLine"),
        symbol=text_of(meta, "symbol"),
        language=text_of(meta, "language"),
    )


def row_of_facts(
    root: Root, facts: ChunkFacts, text: str, score: float | None, matched_by: MatchedBy
) -> Row:
    """A ranked chunk as a candidate; `score` is its distance, None where it is not known."""
    mapped = map_path(root, facts.path)
    return Row(
        repo=repo_id(root),
        rel_path=facts.path,
        container_path=mapped.container_path,
        host_path=mapped.host_path,
        host_path_warning=mapped.warning,
        chunk=text,
        chunk_id=facts.chunk_hash or facts.id,
        model_id=root.model,
        score=_finite(score),
        start_line=facts.start_line or None,
        end_line=facts.end_line or None,
        symbol=facts.symbol,
        language=facts.language,
        matched_by=matched_by,
    )


def facts_of(match: StoredMatch) -> ChunkFacts:
    """What the vector store knows of a chunk, where the word index does not know it."""
    meta = match.metadata
    return ChunkFacts(
        id=match.id,
        source_file=text_of(meta, "sourceFile"),
        path=text_of(meta, "relPath"),
        chunk_index=_line(meta, "chunkIndex") or 0,
        start_line=_line(meta, "startLine") or 0,
        end_line=_line(meta, "endLine") or 0,
        symbol=text_of(meta, "symbol"),
        names=tuple(text_of(meta, "names").split()),
        signature="",
        language=text_of(meta, "language"),
        chunk_hash=text_of(meta, "chunkHash"),
    )


def text_of(meta: Mapping[str, Any], key: str) -> str:
    """A text of the metadata, "" where it is missing or something else."""
    value = meta.get(key)
    return value if isinstance(value, str) else ""


def _line(meta: Mapping[str, Any], key: str) -> int | None:
    value = meta.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _finite(distance: float | None) -> float | None:
    """JSON has no NaN, and an infinite distance is none."""
    return distance if distance is not None and math.isfinite(distance) else None
