"""Write the table of docs/languages.md: what codeinfo knows of each language.

    python -m scripts.languages

The table stands between `<!-- languages -->` and `<!-- end -->`.
"""

import re
from importlib.metadata import version
from pathlib import Path

from apps.code.callgraph.languages import BY_LANGUAGE
from apps.code.languages import FILE_TYPES, FileType
from apps.code.syntax import razor
from apps.code.syntax.documents import BLOCKS, HEADINGS
from apps.code.syntax.queries import query_text

PAGE = Path(__file__).resolve().parents[1] / "docs/languages.md"
HEAD = ["language", "files", "grammar", "chunks", "symbols, outline", "callers, imports"]
PLACE = re.compile("<!-- languages -->.*?<!-- end -->", re.DOTALL)
# Endings and names of files that are shown.
MAX_FILES = 12


def row(kind: FileType) -> list[str]:
    files = [*(f".{extension}" for extension in kind.extensions), *kind.names]
    shown = " ".join(f"`{file}`" for file in files[:MAX_FILES])
    if kind.component and kind.grammar:
        symbols = "scripts"
    elif kind.name in BLOCKS or (kind.grammar and query_text(kind.grammar)):
        symbols = "yes"
    elif kind.grammar in razor.GRAMMARS:
        symbols = "scripts"
    elif kind.name in HEADINGS or (kind.prose and kind.grammar):
        symbols = "headings"
    else:
        symbols = "" if kind.prose else "by keywords"
    return [
        kind.name,
        shown + (" …" if len(files) > MAX_FILES else ""),
        razor.GRAMMARS.get(kind.grammar, kind.grammar),
        "syntax" if kind.grammar else "lines",
        symbols,
        "yes" if kind.name in BY_LANGUAGE else "",
    ]


def page() -> str:
    """Return docs/languages.md with the table of today. Raises ValueError if it has no place."""
    rows = [HEAD, ["---"] * len(HEAD), *map(row, FILE_TYPES)]
    lines = [f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in cells)}|" for cells in rows]
    source = f"Grammars: tree-sitter-language-pack {version('tree-sitter-language-pack')}."
    written = "\n\n".join(["<!-- languages -->", source, "\n".join(lines), "<!-- end -->"])
    text, places = PLACE.subn(lambda _: written, PAGE.read_text())
    if places != 1:
        raise ValueError(f"{PAGE} needs one place for the table")
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
