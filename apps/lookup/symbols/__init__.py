"""Look-ups by name: definitions, references, callers, imports, and the outline of a file
(docs/symbols.md)."""

from apps.lookup.symbols.call_types import CallersQuery, ImportsQuery
from apps.lookup.symbols.callers import find_callers
from apps.lookup.symbols.definitions import find_definitions
from apps.lookup.symbols.imports import find_imports
from apps.lookup.symbols.outline import file_outline
from apps.lookup.symbols.references import find_references
from apps.lookup.symbols.types import OutlineQuery, SymbolQuery

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
