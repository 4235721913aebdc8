"""Tables of names, to which a hundred thousand names are put."""

import re
from fnmatch import translate


def words(table: str) -> frozenset[str]:
    return frozenset(table.split())


class AnyOf:
    """A table of shell patterns. Most are a whole name, its beginning or its end, for which Python
    has something quicker than an expression."""

    def __init__(self, table: str) -> None:
        self.table = table
        names: list[str] = []
        starts: list[str] = []
        ends: list[str] = []
        others: list[str] = []
        for pattern in table.split():
            start, star, end = pattern.partition("*")
            if not star:
                names.append(pattern)
            elif not end:
                starts.append(start)
            elif not start and "*" not in end:
                ends.append(end)
            else:
                others.append(translate(pattern))
        self._names, self._starts, self._ends = frozenset(names), tuple(starts), tuple(ends)
        self._others = re.compile("|".join(others)) if others else None

    def match(self, name: str) -> bool:
        return (
            name in self._names
            or name.startswith(self._starts)
            or name.endswith(self._ends)
            or (self._others is not None and self._others.match(name) is not None)
        )
