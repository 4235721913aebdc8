"""Fixtures: a stand-in for the vector store, and a real ingested repository."""

import math
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.utils import timezone

from apps.code.values import Chunk
from apps.embedding.static import MODEL_ID
from apps.embedding.types import Vectors
from apps.index import spans
from apps.index.chunk_ids import chunk_id
from apps.index.models import IndexLock, IngestRun, Root, SourceFile
from apps.index.texts import get_texts
from apps.index.types import ChunkRecord
from tests.support.parts import list_chunks

MODEL = MODEL_ID


class Question:
    """An embedder for which every question is the same: the shelf knows the distances."""

    def embed_query(self, text: str) -> Vectors:
        return np.array([1.0, 0.0], dtype=np.float32)


@dataclass
class Shelf:
    """Roots with chunks in exactly the order and with exactly the distances a test puts there.

    Its `nearest` stands where Chroma's does; rows of the database and texts are real.
    """

    rows: dict[uuid.UUID, list[tuple[str, float]]] = field(default_factory=dict)
    chunks: dict[uuid.UUID, list[Chunk]] = field(default_factory=dict)  # by SourceFile
    # By root: the chunks in its part. Rows of files tell of the others.
    described: dict[uuid.UUID, list[tuple[SourceFile, ChunkRecord]]] = field(default_factory=dict)
    requested: list[int] = field(default_factory=list)
    fails: Exception | None = None

    def root(self, name: str = "repo", *, path: str = "", generation: int = 1) -> Root:
        root, _ = Root.objects.get_or_create(
            name=name,
            defaults={
                "path": path or f"/src/{name}",
                "model": MODEL,
                "generation": generation,
                "last_ingest_at": timezone.now(),
            },
        )
        self.rows.setdefault(root.id, [])
        return root

    def file(
        self, path: str, repo: str = "repo", *, since: int = 1, until: int | None = None
    ) -> SourceFile:
        root = self.root(repo)
        run = IngestRun.objects.create(
            root=root, operation="start", path=root.path, name=repo, model=MODEL
        )
        return SourceFile.objects.create(root=root, run=run, path=path, since=since, until=until)

    def put(
        self,
        distance: float | None,
        path: str = "a.py",
        text: str | None = None,
        *,
        repo: str = "repo",
        file: SourceFile | None = None,
        start_line: int = 1,
        end_line: int = 2,
        symbol: str = "",
        language: str = "",
    ) -> None:
        """One more chunk at the end of its file and of the root's list. A distance of None is one
        that is no number."""
        root = self.root(repo)
        file = (
            file or SourceFile.objects.filter(root=root, path=path).first() or self.file(path, repo)
        )
        text = f"text {repo} {len(self.rows[root.id])}" if text is None else text
        before = self.chunks.setdefault(file.id, [])
        offset = sum(len(chunk.text) for chunk in before)
        before.append(Chunk(text, start_line, end_line, symbol, offset=offset))
        save_text(file, "".join(chunk.text for chunk in before), before, language)
        index = len(before) - 1
        if symbol:
            described = self.described.setdefault(root.id, [])
            described.append((file, record_of(file, before[index], index)))
            list_chunks(root, described, np.eye(1, 2, dtype=np.float32).repeat(len(described), 0))
        row = chunk_id(file.id, index), math.nan if distance is None else distance
        self.rows[root.id].append(row)

    # --- what stands in for Chroma ---

    def nearest(self, root_id: uuid.UUID, vector: Vectors, n: int) -> list[tuple[str, float]]:
        if self.fails:
            raise self.fails
        self.requested.append(n)
        return self.rows[root_id][:n]


def save_text(
    file: SourceFile, text: str, chunks: Sequence[Chunk], language: str = ""
) -> SourceFile:
    """Store the text of a file, and where its chunks are in it."""
    file.sha256 = sha256(text.encode()).hexdigest()
    file.spans, file.chunks = spans.pack(chunks), len(chunks)
    file.language = language or file.language
    file.save()
    get_texts().add({file.sha256: text})
    return file


def record_of(file: SourceFile, chunk: Chunk, index: int = 0) -> ChunkRecord:
    """A chunk as a part takes it."""
    return ChunkRecord(
        chunk_id(file.id, index),
        str(file.id),
        str(file.run_id),
        file.path,
        file.language,
        file.sha256,
        index,
        chunk,
    )


@pytest.fixture
def shelf(db: None, monkeypatch: pytest.MonkeyPatch, configure: Callable[..., None]) -> Shelf:
    """An index that is locked and empty, searched in mode `vector`: for the rules of
    docs/retrieval.md about distances. Rules of mode `hybrid` use `stage`."""
    configure(retrieval_mode="vector")
    IndexLock.objects.create(model=MODEL, dimension=2)
    made = Shelf()
    monkeypatch.setattr("apps.retrieval.nearest.store.nearest", made.nearest)
    monkeypatch.setattr("apps.retrieval.nearest.of_stores", dict)
    monkeypatch.setattr("apps.retrieval.search.get_embedder", lambda model_id: Question())
    return made


Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(client: Client) -> Ask:
    """ask(query="x", limit=5) is the answer of POST /tools/vector-search, which must be 200."""

    def post(**body: Any) -> dict[str, Any]:
        response = client.post(
            "/tools/vector-search", {"query": "anything", **body}, content_type="application/json"
        )
        assert response.status_code == 200, response.content
        answer: dict[str, Any] = response.json()
        return answer

    return post
