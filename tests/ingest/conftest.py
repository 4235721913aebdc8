"""Fixtures of an index: real files, the built-in embedder, real parts."""

from tests.ingest.embeddings import embedded, embeddings
from tests.support.index import contents, index, repo, wire_ends

__all__ = ["contents", "embedded", "embeddings", "index", "repo", "wire_ends"]
