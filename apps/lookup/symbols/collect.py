"""Look-ups in the symbol tables of several roots."""

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from apps.core.errors import Unavailable
from apps.index.changes import sweep_due
from apps.index.models import Root
from apps.retrieval.repositories import lacks_words, words_rebuilt

log = logging.getLogger("codeinfo.lookup")

SymbolRow = TypeVar("SymbolRow")


def collect_symbols(
    roots: Sequence[Root], look_up: Callable[[Root], Sequence[SymbolRow]]
) -> tuple[list[SymbolRow], str]:
    """The rows of all roots, and the text of `degraded`.

    `look_up` returns the rows of one root, or raises Unavailable. An incomplete word index returns
    the rows that it has, and the worker rebuilds it.
    """
    rows: list[SymbolRow] = []
    wordless: list[Root] = []
    for root in roots:
        try:
            rows += look_up(root)
        except Unavailable as error:
            log.warning("symbol look-up failed: %s", error.message)
            wordless.append(root)
        else:
            wordless += [root] if lacks_words(root) else []
    if not wordless:
        return rows, ""
    sweep_due.set()
    return rows, words_rebuilt(wordless)
