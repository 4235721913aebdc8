"""The vectors of the chunks of a notebook that stay as they are published.

A notebook that was run again has other outputs: its cells are on other lines of the file, and have
the same text.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from apps.code.notebooks import is_notebook_path
from apps.code.values import Chunk
from apps.core.errors import Unavailable
from apps.embedding.texts import embedding_text
from apps.embedding.types import EmbeddingText, Vectors
from apps.index import queries
from apps.index.chunk_ids import chunk_id
from apps.index.chunks import StoredChunk, read_chunks
from apps.index.mapped import files, lists, part
from apps.index.mapped.opened import opened_roots
from apps.index.mapped.part import LivePart
from apps.index.models import Root, SourceFile
from apps.index.types import ChunkFacts


def kept_vectors(
    root: Root, model: str, rows: Iterable[SourceFile]
) -> dict[EmbeddingText, Vectors]:
    """Return text → vector of what the published notebooks have at the paths of some rows: float32
    (dimension,), of unit length. Empty if nothing of this model is published, or it cannot be read.
    """
    paths = [row.path for row in rows if is_notebook_path(row.path)]
    if not paths or not root.generation or root.model != model:
        return {}
    published = list(queries.live_files(root).ingested().filter(path__in=paths))
    try:
        return _vectors_of(root, published)
    except (files.Damaged, Unavailable, OSError):
        return {}


def _vectors_of(root: Root, published: Sequence[SourceFile]) -> dict[EmbeddingText, Vectors]:
    vectors: dict[EmbeddingText, Vectors] = {}
    ids = [chunk_id(row.document, index) for row in published for index in range(row.chunks)]
    stored = read_chunks((root, key) for key in ids).values()
    for live in opened_roots.get(root).parts:
        rows = {
            row: chunk
            for chunk in stored
            if (row := _row_of(live, chunk.facts)) is not None and live.part.codes.scales[row]
        }
        if rows:
            # What is kept gets new checksums.
            files.verify(part.path_of(lists.folder(), live.part.name))
            found = live.part.codes.vectors(np.array([*rows]))
            vectors |= dict(zip(map(_text_of, rows.values()), found, strict=True))
    return vectors


def _row_of(live: LivePart, facts: ChunkFacts) -> int | None:
    return live.part.row_of(facts.source_file, facts.chunk_index, live.files)


def _text_of(stored: StoredChunk) -> EmbeddingText:
    facts = stored.facts
    chunk = Chunk(stored.text, 1, 1, facts.symbol, facts.names, facts.signature)
    return embedding_text(facts.path, chunk)
