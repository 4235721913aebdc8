"""Write what says which settings there are: the tables of docs/configuration.md, and .env.example.

    python -m scripts.settings

The settings are those of apps/core/config.py. The table of a group stands between two comments in
docs/configuration.md: `<!-- settings: Ingest -->` and `<!-- end -->`.
"""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from apps.core.config import Config

HOME = Path(__file__).resolve().parents[1]
PAGE, EXAMPLE = HOME / "docs/configuration.md", HOME / ".env.example"
HEAD = """# Every setting of codeinfo, with its default (empty where it is computed or nothing).
# docs/configuration.md says what they mean. Copy this file to .env and take the # away where you
# want another value."""


def groups() -> dict[str, list[Any]]:
    """Return heading → its settings."""
    found: dict[str, list[Any]] = {}
    for item in fields(Config):
        found.setdefault(item.metadata["group"], []).append(item.metadata)
    return found


def default(row: Any) -> str:
    """Return a default as one writes it in .env; "" if it is computed, or there is none."""
    value = "" if row["shown"] or row["default"] == () else row["default"]
    return str(value).lower() if isinstance(value, bool) else str(value)


def table(rows: list[Any]) -> str:
    lines = ["| variable | default | meaning |", "| --- | --- | --- |"]
    for row in rows:
        shown = row["shown"] or (f"`{default(row)}`" if default(row) else "")
        lines.append(f"| `{row['env']}` | {shown} | {row['doc']} |")
    return "\n".join(lines)


def page() -> str:
    """Return docs/configuration.md with the tables of today. Raises ValueError if it has not one
    place for each."""
    text = PAGE.read_text()
    for name, rows in groups().items():
        begin, end = f"<!-- settings: {name} -->", "<!-- end -->"
        written = f"{begin}\n\n{table(rows)}\n\n{end}"
        text, places = re.subn(f"{begin}.*?{end}", lambda _, new=written: new, text, flags=re.S)
        if places != 1:
            raise ValueError(f"{PAGE} needs {begin} and {end} once")
    return text


def example() -> str:
    parts = [HEAD]
    for name, rows in groups().items():
        parts += ["", f"# --- {name}", *(f"# {row['env']}={default(row)}" for row in rows)]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    EXAMPLE.write_text(example())
