"""The texts of ingested files: each content once, compressed, for all roots."""

from apps.index.texts.store import TextStore, get_texts, reset_texts

__all__ = ["TextStore", "get_texts", "reset_texts"]
