"""Fixtures of an index: real files, the built-in embedder, real parts."""

from tests.ingest.embeddings import embeddings
from tests.support.index import contents, index, repo, wire_ends

__all__ = ["contents", "embeddings", "index", "repo", "wire_ends"]
