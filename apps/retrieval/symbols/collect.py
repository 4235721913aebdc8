"""Look-ups in the symbol tables of several roots."""

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from apps.core.errors import Unavailable
from apps.index.changes import sweep_due
from apps.index.models import Root
from apps.retrieval.repositories import lacks_words, words_rebuilt

log = logging.getLogger("codeinfo.retrieval")

Row = TypeVar("Row")


def collect_symbols(
    roots: Sequence[Root], look_up: Callable[[Root], Sequence[Row]]
) -> tuple[list[Row], str]:
    """What `look_up` returns for all roots, and the text of `degraded`.

    A root with an incomplete word index gives what it has, and the worker rebuilds the index.
    """
    rows: list[Row] = []
    wordless: list[Root] = []
    for root in roots:
        try:
            rows += look_up(root)
        except Unavailable as error:
            log.warning("no symbols of a root: %s", error.message)
            wordless.append(root)
        else:
            wordless += [root] if lacks_words(root) else []
    if not wordless:
        return rows, ""
    sweep_due.set()
    return rows, words_rebuilt(wordless)
