"""The definitions in the live files of a root, by name, by the beginning of a name and by file; and
the files that have an identifier."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from uuid import UUID

from apps.core.errors import Unavailable
from apps.core.system.mapping import read_again
from apps.index import unread
from apps.index.mapped.files import Damaged
from apps.index.mapped.opened import opened_roots
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root
from apps.index.types import StoredSymbol


@read_again
def definitions_of(root: Root, name: str) -> list[StoredSymbol]:
    """Return the definitions of a name; if there are none, those of the name in other case. Raises
    Unavailable."""
    with _mapped(root) as mapped:
        return mapped.definitions(name)


@read_again
def lines_defining(root: Root, name: str, documents: Collection[str]) -> set[tuple[str, int]]:
    """Return document and line of the definitions of a name in these documents: of a name with
    many, most are not read. Raises Unavailable."""
    with _mapped(root) as mapped:
        return mapped.lines_defining(name, documents)


@read_again
def definitions_of_names(
    root: Root, names: Iterable[str], most: int
) -> dict[str, list[StoredSymbol]]:
    """Return name → its definitions, without names that have none, or more than `most` in any case:
    40 names take half the time of 40 calls of `definitions_of`. Raises Unavailable."""
    with _mapped(root) as mapped:
        return mapped.definitions_of_names(names, most)


@read_again
def symbols_beginning(root: Root, prefix: str, n: int) -> list[StoredSymbol]:
    """Return n symbols whose name begins with a prefix, in any case, by name. Raises
    Unavailable."""
    with _mapped(root) as mapped:
        return mapped.symbols_beginning(prefix, n)


@read_again
def outline_of(
    root: Root, document: UUID | str, lines: tuple[int, int] | None = None
) -> list[StoredSymbol]:
    """Return the definitions in a live file (`SourceFile.document`), by line. lines: the first and
    the last line on which one may begin. Raises Unavailable."""
    with _mapped(root) as mapped:
        return mapped.outline(str(document), lines) or []


@read_again
def files_with_identifier(root: Root, name: str) -> dict[str, str]:
    """Return document → path of the live files whose text has an identifier, by path. The match is
    exact but for names of one letter. Raises Unavailable."""
    with _mapped(root) as mapped:
        return mapped.files_with_identifier(name)


@contextmanager
def _mapped(root: Root) -> Iterator[MappedRoot]:
    try:
        mapped = opened_roots.get(root)
        if mapped.lost:
            unread.part_lost(root)
        yield mapped
    except Damaged as error:
        unread.part_lost(root)
        raise Unavailable(f"The index of {root.path}: {error}", code="INDEX_DAMAGED") from error
