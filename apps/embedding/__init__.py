"""Turning texts into vectors: the built-in embedder, and any OpenAI-compatible server."""

from apps.embedding.catalogue import (
    DEFAULT_MODEL,
    available_models,
    get_embedder,
    is_gone,
    reach,
    resolve,
)
from apps.embedding.texts import embedding_text, fit

__all__ = [
    "DEFAULT_MODEL",
    "available_models",
    "embedding_text",
    "fit",
    "get_embedder",
    "is_gone",
    "reach",
    "resolve",
]
