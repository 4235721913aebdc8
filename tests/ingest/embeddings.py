"""What is embedded, and another embedding model than the built-in one with its server."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apps.embedding.static import StaticCodeEmbedder
from tests.stand_ins.embeddings_server import EmbeddingsServer

OTHER = "openai:text-embedding-small"


@pytest.fixture
def embeddings(configure: Callable[..., None]) -> Iterator[EmbeddingsServer]:
    with EmbeddingsServer() as running:
        configure(embedding_base_url=running.url)
        yield running


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the chunks that are embedded from here on."""
    paths: list[str] = []
    real = StaticCodeEmbedder.embed_documents

    def noting(self: StaticCodeEmbedder, texts: Any) -> Any:
        paths.extend(text.path for text in texts)
        return real(self, texts)

    monkeypatch.setattr(StaticCodeEmbedder, "embed_documents", noting)
    return paths
