"""Look-ups by name: definitions, references, and the outline of a file (docs/symbols.md)."""

from apps.retrieval.symbols.definitions import find_definitions
from apps.retrieval.symbols.outline import file_outline
from apps.retrieval.symbols.references import find_references
from apps.retrieval.symbols.types import OutlineQuery, SymbolQuery

__all__ = [
    "OutlineQuery",
    "SymbolQuery",
    "file_outline",
    "find_definitions",
    "find_references",
]
