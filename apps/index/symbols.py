"""The definitions in the live files of a root, by name, by the beginning of a name and by file; and
the files that have an identifier: the functions of `mapped.lookups` with a Root in place of its
parts. They raise Unavailable."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from apps.core.errors import Unavailable
from apps.core.system.mapping import read_again
from apps.index import unread
from apps.index.mapped import lookups
from apps.index.mapped.files import Damaged
from apps.index.mapped.lookups import Parts
from apps.index.mapped.opened import opened_roots
from apps.index.models import Root

P = ParamSpec("P")
Result = TypeVar("Result")


def _of_root(
    look_up: Callable[Concatenate[Parts, P], Result],
) -> Callable[Concatenate[Root, P], Result]:
    @wraps(look_up)
    def of_root(root: Root, /, *args: P.args, **options: P.kwargs) -> Result:
        try:
            mapped = opened_roots.get(root)
            if mapped.lost:
                unread.part_lost(root)
            return look_up(mapped.parts, *args, **options)
        except Damaged as error:
            unread.part_lost(root)
            raise Unavailable(f"The index of {root.path}: {error}", code="INDEX_DAMAGED") from error

    return read_again(of_root)


definitions_of = _of_root(lookups.definitions)
lines_defining = _of_root(lookups.lines_defining)
definitions_of_names = _of_root(lookups.definitions_of_names)
symbols_beginning = _of_root(lookups.symbols_beginning)
symbols_alike = _of_root(lookups.symbols_alike)
outline_of = _of_root(lookups.outline)
files_with_identifier = _of_root(lookups.files_with_identifier)
