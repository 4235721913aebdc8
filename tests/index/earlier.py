"""Makes of an ingested root what a version before December 2026 would have made of it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.embedding.types import Vectors
from apps.index.chunks import StoredChunk, read_chunks
from apps.index.installation import origin_of
from apps.index.lexical import get_lexical
from apps.index.models import Root, SourceFile
from apps.index.queries import live_file_ids
from apps.index.texts import get_texts
from apps.index.vectors.packing import description
from apps.index.vectors.store import get_store
from tests.index import verbs

Metadata = dict[str, Any]


def packed(text: str, metadata: Mapping[str, Any]) -> Metadata:
    """The metadata that Chroma had of a chunk."""
    filtered = {key: metadata[key] for key in ("runId", "sourceFile") if key in metadata}
    return filtered | {"record": json.dumps([text, metadata], ensure_ascii=False)}


def add_rows(
    root: Root, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata | None]
) -> None:
    """Add rows to a root's collection, which is created if it is missing."""
    store = get_store()
    about = description(root.id, root.model, vectors.shape[1], origin_of(root))
    store._client.call(verbs.add_earlier, store._name(root.id), about, ids, vectors, metadata)


def make_earlier(root: Root) -> dict[str, StoredChunk]:
    """Store the live chunks of a root as an earlier version did. Return them by their new ids."""
    live = live_file_ids(root)
    ids = [each for each in sorted(get_store().ids(root.id)) if each.rpartition(":")[0] in live]
    vectors = get_store().vectors(root.id, ids)
    assert vectors is not None
    chunks = [read_chunks({root.id: ids})[root.id][each] for each in ids]
    rows = SourceFile.objects.in_bulk([UUID(chunk.facts.source_file) for chunk in chunks])
    runs = {str(row.id): row.run_id for row in rows.values()}
    new = {
        f"{runs[facts.source_file]}:{facts.path}:{facts.chunk_index}": chunk
        for chunk in chunks
        for facts in [chunk.facts]
    }
    get_store().drop(root.id)
    add_rows(
        root,
        list(new),
        vectors,
        [packed(chunk.text, _metadata(root, key, chunk)) for key, chunk in new.items()],
    )
    get_lexical().drop(root.id)
    SourceFile.objects.filter(root=root).update(spans=b"")
    Root.objects.filter(id=root.id).update(
        chunker_version=f"1/{root.chunker_version.partition('/')[2]}"
    )
    lost = {chunk.facts.sha256 for chunk in chunks}
    get_texts().collect(lambda keys: set(keys) - lost)
    return new


def _metadata(root: Root, key: str, chunk: StoredChunk) -> Metadata:
    facts = chunk.facts
    return {
        "runId": key.partition(":")[0],
        "root": root.path,
        "relPath": facts.path,
        "sourceFile": facts.source_file,
        "fileHash": facts.sha256,
        "chunkHash": chunk.hash,
        "chunkIndex": facts.chunk_index,
        "startLine": facts.start_line,
        "endLine": facts.end_line,
        "symbol": facts.symbol,
        "names": " ".join(facts.names),
        "signature": facts.signature,
        "language": facts.language,
        "model": root.model,
    }
