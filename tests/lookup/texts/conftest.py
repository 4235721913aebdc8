"""The repositories of the symbols' tests, read as text."""

from tests.lookup.symbols.conftest import Post, harbour, post

__all__ = ["Post", "harbour", "post"]
