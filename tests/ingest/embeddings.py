"""Another embedding model than the built-in one, and its server."""

from collections.abc import Callable, Iterator

import pytest

from tests.stand_ins.embeddings_server import EmbeddingsServer

OTHER = "openai:text-embedding-small"


@pytest.fixture
def embeddings(configure: Callable[..., None]) -> Iterator[EmbeddingsServer]:
    with EmbeddingsServer() as running:
        configure(embedding_base_url=running.url)
        yield running
