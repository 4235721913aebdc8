"""Pages of lists. All tools that list return the same opaque cursor.

A cursor holds the position of the next row, and two digests: of the call, and of the index and what
comes before. Both are compared when it is sent back, so that no page has wrong rows: a cursor of
another call is refused, and one of an index that has changed has expired.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from typing import Any, TypeVar

from apps.core.errors import Conflict, InvalidInput
from apps.core.types import JSON
from apps.index.models import Root

# The key of the Page in the output of a tool, until `finished`. JSON of clients holds none.
PAGE = " page"
# Keys of the rows of a list; an output has one of them.
ROWS = ("results", "repos")
DIGITS = 8  # of a digest
_NUMBERS = r"\d{1,9}(?:-\d{1,9}){0,2}"
_CURSOR = re.compile(rf"({_NUMBERS})\.([0-9a-f]{{{DIGITS}}})([0-9a-f]{{{DIGITS}}})")
# Fields of a query that its pages need not have in common.
_OF_A_PAGE = frozenset({"limit", "offset", "cursor"})
NOT_A_CURSOR = "cursor must be the nextCursor of an earlier page of this call"
OTHER_CALL = f"{NOT_A_CURSOR}, with the same arguments"
EXPIRED = "What is listed has changed since that page."

Position = tuple[int, ...]
ListRow = TypeVar("ListRow")


@dataclass(frozen=True)
class Page:
    """The rows of an output as a part of the whole list."""

    count: int  # rows, before the output is cut
    after: Callable[[int], str]  # the cursor behind so many of them
    more: bool  # whether the list goes on behind all of them
    narrow: str = "path, language or repository"  # how to get fewer rows; "" for no way


@dataclass(frozen=True)
class Pager:
    """Reads and writes the cursors of one call."""

    start: Position  # of the page; () is the first
    given: str  # the second digest of the cursor; "" for none
    call: str  # the digest of the call
    index: object  # what the second digest is of, with the position and what comes before it

    @classmethod
    def of(cls, tool: str, query: Any, roots: Sequence[Root] = ()) -> "Pager":
        """The pager of a query that reads these roots. Raises InvalidInput CURSOR_INVALID."""
        call = digest(tool, _call(query))
        index = sorted((root.id.hex, root.generation) for root in roots)
        cursor = query.cursor
        if cursor is None or cursor == "":
            return cls((), "", call, index)
        match = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
        if match is None or match[2] != call:
            problem = NOT_A_CURSOR if match is None else OTHER_CALL
            raise InvalidInput(problem, code="CURSOR_INVALID", details={"details": [problem]})
        return cls(tuple(map(int, match[1].split("-"))), match[3], call, index)

    def check(self, before: object) -> None:
        """Compare what comes before the start with what did. Raises Conflict CURSOR_EXPIRED."""
        if self.given and self.given != digest(self.index, self.start, before):
            raise Conflict(EXPIRED, code="CURSOR_EXPIRED")

    def cursor(self, position: Position, before: object) -> str:
        """The cursor of a position. When it comes back, `check` gets `before` again."""
        place = "-".join(map(str, position))
        return f"{place}.{self.call}{digest(self.index, position, before)}"

    def page(
        self,
        rows: Sequence[ListRow],
        limit: int,
        key: Callable[[ListRow], object],
        offset: int = 0,
        **more: Any,
    ) -> tuple[Sequence[ListRow], Page]:
        """The rows of the page, of the whole list. Raises Conflict CURSOR_EXPIRED.

        key: what distinguishes a row from all others
        offset: rows to leave out, without a cursor
        more: other fields of the Page
        """
        first = self.start[0] if self.start else offset
        self.check(key(rows[first - 1]) if 0 < first <= len(rows) else None)

        def after(count: int) -> str:
            return self.cursor((first + count,), key(rows[first + count - 1]))

        shown = rows[first : first + limit]
        return shown, Page(len(shown), after, first + len(shown) < len(rows), **more)


def finished(output: JSON) -> JSON:
    """The output of a tool as clients get it: if the list goes on behind its rows, with their
    cursor and a hint. `truncated` is also true if something was not looked at."""
    page = output.get(PAGE)
    if not isinstance(page, Page):
        return output
    rest = {key: value for key, value in output.items() if key != PAGE}
    count = len(next(rest[key] for key in ROWS if key in rest))
    if count == page.count and not page.more:
        return rest
    narrow = f", or narrow with {page.narrow}" if page.narrow else ""
    more = f"There is more: call again with `nextCursor` as `cursor`{narrow}."
    hint = f"{rest['hint']} {more}" if rest.get("hint") else more
    return rest | {"truncated": True, "nextCursor": page.after(count), "hint": hint}


def _call(query: Any) -> object:
    if not is_dataclass(query):
        return query
    names = [field.name for field in fields(query) if field.name not in _OF_A_PAGE]
    return [(name, _call(getattr(query, name))) for name in names]


def digest(*values: object) -> str:
    """A short text that is another one for other values."""
    return blake2b(repr(values).encode("utf-8", "replace"), digest_size=DIGITS // 2).hexdigest()
