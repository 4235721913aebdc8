"""Fixtures: a stand-in for the vector store, and a real ingested repository."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from django.test import Client
from django.utils import timezone

from apps.embedding.static import MODEL_ID
from apps.embedding.types import Vectors
from apps.index.models import IndexLock, IngestRun, Root, SourceFile
from apps.index.types import StoredMatch

MODEL = MODEL_ID


class Question:
    """An embedder for which every question is the same: the shelf knows the distances."""

    def embed_query(self, text: str) -> Vectors:
        return np.array([1.0, 0.0], dtype=np.float32)


@dataclass
class Shelf:
    """Roots with rows in exactly the order and with exactly the distances a test puts there.

    It stands where `get_store()` does; the rows of the database are real.
    """

    matches: dict[uuid.UUID, list[StoredMatch]] = field(default_factory=dict)
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
        self.matches.setdefault(root.id, [])
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
        chunk: str | None = None,
        file: SourceFile | None = None,
        **metadata: Any,
    ) -> None:
        """One more row at the end of the root's list. Metadata given as None is left out."""
        root = self.root(repo)
        file = (
            file or SourceFile.objects.filter(root=root, path=path).first() or self.file(path, repo)
        )
        number = len(self.matches[root.id])
        facts = {
            "relPath": path,
            "sourceFile": str(file.id),
            "chunkHash": chunk or f"{repo}-{number}",
            "startLine": 1,
            "endLine": 2,
            "model": MODEL,
            **metadata,
        }
        self.matches[root.id].append(
            StoredMatch(
                id=f"vector-{number}",
                text=f"text {repo} {number}" if text is None else text,
                metadata={key: value for key, value in facts.items() if value is not None},
                distance=distance,
            )
        )

    def query(self, root_id: uuid.UUID, vector: Vectors, n: int) -> list[StoredMatch]:
        if self.fails:
            raise self.fails
        self.requested.append(n)
        return self.matches[root_id][:n]


@pytest.fixture
def shelf(db: None, monkeypatch: pytest.MonkeyPatch, configure: Callable[..., None]) -> Shelf:
    """An index that is locked and empty, searched in mode `vector`: for the rules of
    docs/retrieval.md about distances. Rules of mode `hybrid` use `stage`."""
    configure(retrieval_mode="vector")
    IndexLock.objects.create(model=MODEL, dimension=2)
    made = Shelf()
    monkeypatch.setattr("apps.retrieval.nearest.get_store", lambda: made)
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
