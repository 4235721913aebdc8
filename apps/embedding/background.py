"""The built-in embedder in a process of its own, for ingests of many files."""

import logging
from collections.abc import Sequence
from functools import cache

from apps.core.concurrency.background import Background, ProcessLost
from apps.embedding.static import StaticCodeEmbedder
from apps.embedding.types import Embedder, EmbeddingText, Vectors

log = logging.getLogger("codeinfo.embedding")


def in_background(embedder: Embedder) -> Embedder:
    """Return an embedder that computes in another process, if `embedder` computes in this one."""
    return BackgroundEmbedder(embedder) if isinstance(embedder, StaticCodeEmbedder) else embedder


class BackgroundEmbedder:
    """Embeds documents as StaticCodeEmbedder does. If the process is lost, this one computes."""

    def __init__(self, embedder: StaticCodeEmbedder) -> None:
        self._embedder = embedder
        self._process = Background()
        self.id = embedder.id
        self.max_tokens = embedder.max_tokens

    def embed_documents(self, texts: Sequence[EmbeddingText]) -> Vectors:
        try:
            return self._process.call(embed, list(texts))
        except ProcessLost as error:
            log.warning("embedding continues in the server", extra={"context": {"why": str(error)}})
            return self._embedder.embed_documents(texts)

    def embed_query(self, text: str) -> Vectors:
        return self._embedder.embed_query(text)

    def close(self) -> None:
        """End the process."""
        self._process.close()


@cache
def _embedder() -> StaticCodeEmbedder:
    return StaticCodeEmbedder()


def embed(texts: Sequence[EmbeddingText]) -> Vectors:
    """Called in the process."""
    return _embedder().embed_documents(texts)
