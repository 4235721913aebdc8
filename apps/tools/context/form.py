"""The compact form of a Context answer, which MCP returns. `packing` counts its tokens.

Passages and definitions are rows with a list of lines. Callers, tests and mentions are texts:
`repo/path:12 symbol | line`.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from apps.core.types import JSON
from apps.tools.forms import span

# The key of the lines with each role.
LINES = {"caller": "callers", "test": "tests", "mention": "mentions"}
_NUMBER = re.compile(r":(\d{1,9}) ")


def compact_row(row: JSON) -> JSON:
    """A passage or a definition."""
    return {
        "repo": row["repo"],
        "relPath": row["relPath"],
        "lines": span(row),
        **({"symbol": row["symbol"]} if row.get("symbol") else {}),
        **({"definitionOf": row["of"]} if row.get("of") else {}),
        **({"weak": True} if row.get("weak") else {}),
        **({"cut": True} if row.get("cut") else {}),
        "chunk": row["chunk"].split("\n"),
    }


def compact_line(row: JSON) -> str:
    """A caller, a test or a mention."""
    symbol = f"{row['symbol']} " if row.get("symbol") else ""
    return f"{row['repo']}/{row['relPath']}:{row['startLine']} {symbol}| {row['chunk']}"


def expanded_lines(output: Mapping[str, Any], repositories: Collection[str]) -> Iterator[JSON]:
    """The rows of the lines of a compact output, without paths of the machine. Leaves out texts
    that are not in one of these repositories."""
    for role, key in LINES.items():
        texts = output.get(key)
        for text in texts if isinstance(texts, list) else ():
            if isinstance(text, str) and (row := _expanded(text, repositories)):
                yield row | {"kind": role}


def _expanded(text: str, repositories: Collection[str]) -> JSON | None:
    place, _, chunk = text.partition("| ")
    number = _NUMBER.search(place)
    repo = max(
        (repository for repository in repositories if place.startswith(f"{repository}/")),
        key=len,
        default="",
    )
    if number is None or not repo:
        return None
    line = int(number[1])
    return {
        "repo": repo,
        "relPath": place[len(repo) + 1 : number.start()],
        "startLine": line,
        "endLine": line,
        "symbol": place[number.end() :].strip(),
        "chunk": chunk,
    }
