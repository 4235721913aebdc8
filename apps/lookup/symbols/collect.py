"""Look-ups of definitions in several roots."""

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from apps.core.errors import Unavailable
from apps.index.changes import check_due
from apps.index.mapped.opened import opened_roots
from apps.index.models import Root
from apps.retrieval.repositories import lost_parts

log = logging.getLogger("codeinfo.lookup")

SymbolRow = TypeVar("SymbolRow")


def collect_symbols(
    roots: Sequence[Root], look_up: Callable[[Root], Sequence[SymbolRow]]
) -> tuple[list[SymbolRow], str]:
    """The rows of all roots, and the text of `degraded`.

    `look_up` returns the rows of one root, or raises Unavailable. Of a root whose index is damaged
    it returns what can be read.
    """
    rows: list[SymbolRow] = []
    damaged: list[Root] = []
    for root in roots:
        try:
            rows += look_up(root)
        except Unavailable as error:
            log.warning("symbol look-up failed: %s", error.message)
            damaged.append(root)
        else:
            damaged += [root] if opened_roots.get(root).lost else []
    if damaged:
        check_due.set()
    return rows, lost_parts(damaged)
