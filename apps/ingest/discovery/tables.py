"""Tables of file names for fast matching: a folder may have 100,000 files."""

import re
from fnmatch import translate


class PatternTable:
    """A set of shell patterns (fnmatch). Whole names, prefixes and suffixes are matched without a
    regular expression, which is faster."""

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
        """Whether any pattern matches the whole name."""
        return (
            name in self._names
            or name.startswith(self._starts)
            or name.endswith(self._ends)
            or (self._others is not None and self._others.match(name) is not None)
        )
