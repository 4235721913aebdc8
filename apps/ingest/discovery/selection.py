"""The paths that a discovery looks at: all, or those that it was told of and what is below them."""

from collections.abc import Iterable
from typing import TypeAlias

# Name → what is selected below it; None: everything.
Selection: TypeAlias = "dict[str, Selection] | None"


def select(paths: Iterable[str] | None) -> Selection:
    """Return the selection of paths, relative to the root. A slash at the end makes no difference:
    a path stands for everything below it, too. None, and the path of the root, select all."""
    if paths is None:
        return None
    selection: dict[str, Selection] = {}
    for path in paths:
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if not parts:
            return None
        _add(selection, parts)
    return selection


def _add(selection: dict[str, Selection], parts: list[str]) -> None:
    for part in parts[:-1]:
        inner = selection.setdefault(part, {})
        if inner is None:
            return
        selection = inner
    selection[parts[-1]] = None


def is_selected(selection: Selection, path: str) -> bool:
    """Whether a path is selected, or is a folder (it ends with a slash) above a selected path."""
    for part in path.removesuffix("/").split("/") if path else ():
        if selection is None:
            return True
        if part not in selection:
            return False
        selection = selection[part]
    return selection is None or path.endswith("/") or not path
