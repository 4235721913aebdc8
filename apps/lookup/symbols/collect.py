"""Look-ups of definitions in several roots."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from apps.core.errors import Unavailable
from apps.index import unread
from apps.index.models import Root

log = logging.getLogger("codeinfo.lookup")

SymbolRow = TypeVar("SymbolRow")


def collect_symbols(
    roots: Sequence[Root], look_up: Callable[[Root], Iterable[SymbolRow]]
) -> list[SymbolRow]:
    """The rows of all roots.

    `look_up` returns the rows of one root, or raises Unavailable: `marked` tells of it. Of a root
    whose index is damaged it returns what can be read.
    """
    rows: list[SymbolRow] = []
    for root in roots:
        try:
            rows += list(look_up(root))  # all of them or none
        except Unavailable as error:
            log.warning("symbol look-up failed: %s", error.message)
            unread.part_lost(root)
    return rows
