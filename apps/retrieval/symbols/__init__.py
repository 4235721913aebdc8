"""Look-ups by name: definitions, references, callers, imports, and the outline of a file
(docs/symbols.md)."""

from apps.retrieval.symbols.call_types import CallersQuery, ImportsQuery
from apps.retrieval.symbols.callers import find_callers
from apps.retrieval.symbols.definitions import find_definitions
from apps.retrieval.symbols.imports import find_imports
from apps.retrieval.symbols.outline import file_outline
from apps.retrieval.symbols.references import find_references
from apps.retrieval.symbols.types import OutlineQuery, SymbolQuery

__all__ = [
    "CallersQuery",
    "ImportsQuery",
    "OutlineQuery",
    "SymbolQuery",
    "file_outline",
    "find_callers",
    "find_definitions",
    "find_imports",
    "find_references",
]
