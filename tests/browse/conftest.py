"""The fixtures of searches and of symbols."""

from tests.lookup.symbols.conftest import Post, harbour, post
from tests.retrieval.conftest import Ask, Shelf, ask, shelf

__all__ = ["Ask", "Post", "Shelf", "ask", "harbour", "post", "shelf"]
