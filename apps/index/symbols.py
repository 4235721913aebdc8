"""The definitions in the files of a root: by name, by the beginning of a name, and by file.

They are in the word index, and in the parts of the mapped copy, which will replace it: the setting
LOOKUPS_READ_PARTS says which answers. Raises Unavailable.
"""

import logging
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from django.conf import settings

from apps.index import sharing
from apps.index.lexical import StoredSymbol, get_lexical
from apps.index.mapped.files import Damaged
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root
from apps.index.opened import mapped

log = logging.getLogger("codeinfo.index")

Result = TypeVar("Result")


def definitions_of(root: Root, name: str) -> list[StoredSymbol]:
    """Return the definitions of a name; if there are none, those of the name in other case.
    Callers leave out those in files that are not live."""
    return _read(
        root,
        lambda parts: parts.definitions(name),
        lambda: get_lexical().definitions(root.store, name, sharing.reader(root)),
    )


def symbols_beginning(root: Root, prefix: str, n: int) -> list[StoredSymbol]:
    """Return n symbols whose name begins with a prefix, in any case, by name. Callers leave out
    those in files that are not live."""
    return _read(
        root,
        lambda parts: parts.symbols_beginning(prefix, n),
        lambda: get_lexical().symbols_beginning(root.store, prefix, n),
    )


def outline_of(root: Root, document: UUID | str) -> list[StoredSymbol]:
    """Return the definitions in a live file (`SourceFile.document`), by line."""
    return _read(
        root,
        lambda parts: parts.outline(str(document)),
        lambda: get_lexical().outline(root.store, document),
    )


def _read(
    root: Root,
    of_parts: Callable[[MappedRoot], Result | None],
    of_words: Callable[[], Result],
) -> Result:
    """Read parts that answer; otherwise the word index."""
    if settings.LOOKUPS_READ_PARTS and (parts := mapped(root)):
        try:
            if (result := of_parts(parts)) is not None:
                return result
        except Damaged as error:
            facts = {"root": root.path, "reason": str(error)}
            log.warning("mapped copy not usable", extra={"context": facts})
    return of_words()
