"""Fixtures of an index: real files, the built-in embedder, the embedded store."""

from tests.ingest.embeddings import embeddings
from tests.support.index import contents, repo, server, store, wire_ends

__all__ = ["contents", "embeddings", "repo", "server", "store", "wire_ends"]
