"""The texts of ingested files: each content once, compressed, for all roots."""

from apps.index.texts.segments import Block
from apps.index.texts.store import TextStore, get_texts, reset_texts
from apps.index.texts.text_index import Place

__all__ = ["Block", "Place", "TextStore", "get_texts", "reset_texts"]
