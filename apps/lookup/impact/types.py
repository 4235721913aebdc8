"""Values of a change."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

# What became of a definition; "file": lines outside of all definitions, or a file without any.
What = Literal["body", "signature", "added", "removed", "renamed", "file"]
# Files of a change that are compared, and definitions that are followed.
MAX_FILES, MAX_CHANGED = 300, 200


@dataclass(frozen=True)
class FileSides:
    """A changed file before and after, by its paths in the root.

    before, after: its lines; None if it is not there
    """

    path: str
    old_path: str
    before: Sequence[str] | None
    after: Sequence[str] | None


@dataclass
class ChangeSet:
    """The changed files, and what is not known of them."""

    files: list[FileSides] = field(default_factory=list)
    base: str = ""  # id of the commit before; "" for a patch
    notes: list[str] = field(default_factory=list)
    together: dict[str, tuple[int, str]] = field(default_factory=dict)  # as `changed_together`


@dataclass(frozen=True)
class Changed:
    """A changed definition; with an empty symbol, the file around its definitions.

    line, end_line: of the new text, or of the old one if it is removed
    rows: of a file, the changed lines outside of definitions, of both texts, as text
    """

    what: What
    path: str
    old_path: str
    symbol: str
    old_symbol: str
    line: int
    end_line: int
    text: str
    rows: Sequence[str] = ()
