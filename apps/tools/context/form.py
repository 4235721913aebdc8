"""The compact form of a Context answer, which MCP returns. `packing` counts its tokens.

Passages and definitions are rows with a list of lines. Callers, tests and mentions are texts:
`repo/path:12 symbol | line`.
"""

from apps.core.types import JSON
from apps.tools.forms import named, span

# The key of the lines with each role.
LINES = {"caller": "callers", "test": "tests", "mention": "mentions"}


def compact_row(row: JSON) -> JSON:
    """A passage or a definition."""
    return {
        "repo": row["repo"],
        "relPath": row["relPath"],
        "lines": span(row),
        **named(row, "symbol"),
        **({"definitionOf": row["of"]} if row.get("of") else {}),
        **named(row, "weak", "cut"),
        "chunk": row["chunk"].split("\n"),
    }


def compact_line(row: JSON) -> str:
    """A caller, a test or a mention."""
    symbol = f"{row['symbol']} " if row.get("symbol") else ""
    return f"{row['repo']}/{row['relPath']}:{row['startLine']} {symbol}| {row['chunk']}"
