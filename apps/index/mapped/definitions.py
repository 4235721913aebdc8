"""The definitions in the files of a part, and their names in order.

Names are found in any case of ASCII letters: letters of other alphabets have to be equal.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.code.values import Symbol
from apps.index.frames import line_of
from apps.index.mapped import files
from apps.index.mapped.framed_rows import FramedRows

Numbers = NDArray[np.uint32]
_FIELDS = attrgetter("name", "path", "kind", "start_line", "end_line", "signature")
_FIRST_LINE = 3  # of the fields
# Sorts behind whatever begins with a prefix.
_LAST = "\U0010ffff"


class Definitions(NamedTuple):
    """d definitions of m files, one file after the other, and their k distinct names.

    content, ends: the definitions (`FramedRows`): name, path, kind, first and last line, signature
    bounds: uint32 (m + 1,); the definitions of file i are `bounds[i]` to `bounds[i + 1]`
    names: uint8, UTF-8 of the names in lower case, in the order of their bytes
    name_ends: uint32 (k + 1,), where each name ends in `names`, from 0
    name_bounds: uint32 (k + 1,); those of name i are at `name_bounds[i]` to `name_bounds[i + 1]` of
    places: uint32 (d,), numbers of definitions, ascending within a name
    """

    content: NDArray[np.uint8]
    ends: Numbers
    bounds: Numbers
    names: NDArray[np.uint8]
    name_ends: Numbers
    name_bounds: Numbers
    places: Numbers

    @classmethod
    def of(cls, of_files: Sequence[Sequence[bytes]]) -> "Definitions":
        """of_files: the definitions in each file, as lines of frames"""
        lines = [definition for of_file in of_files for definition in of_file]
        numbers: dict[bytes, list[int]] = {}
        for number, line in enumerate(lines):
            numbers.setdefault(folded(json.loads(line)[0]), []).append(number)
        names = sorted(numbers)
        places = [numbers[name] for name in names]
        return cls(
            *FramedRows.of(lines),
            _ends(of_files),
            np.frombuffer(b"".join(names), np.uint8),
            _ends(names),
            _ends(places),
            np.array([number for of_name in places for number in of_name], np.uint32),
        )

    @property
    def rows(self) -> FramedRows:
        return FramedRows(self.content, self.ends)

    def named(self, name: str) -> Numbers:
        """The definitions of a name in any case."""
        wanted = folded(name)
        place = self._find(wanted)
        is_there = place < len(self.name_ends) - 1 and self._name(place) == wanted
        return self._at(place) if is_there else self.places[:0]

    def beginning(self, prefix: str) -> Iterator[tuple[bytes, Numbers]]:
        """The names that begin with a prefix in any case, in order, each with its definitions."""
        for place in range(self._find(folded(prefix)), self._find(folded(prefix + _LAST))):
            yield self._name(place), self._at(place)

    def of_file(self, file: int) -> range:
        """The definitions of a file, which are in the order of their first lines."""
        return range(self.bounds.item(file), self.bounds.item(file + 1))

    def outline(self, file: int, lines: tuple[int, int] | None) -> list[Any]:
        """The rows of the definitions of a file; lines: the first and the last on which one may
        begin."""
        numbers = self.of_file(file)
        if lines is None:
            return self.rows.read(numbers)

        row = self.rows.one_by_one()

        def begins(number: int) -> int:
            return int(row(number)[_FIRST_LINE])

        start = bisect_left(numbers, lines[0], key=begins)
        end = bisect_right(numbers, lines[1], start, key=begins)
        return [row(number) for number in numbers[start:end]]

    def files_of(self, numbers: Numbers) -> NDArray[np.intp]:
        """The file of each of some definitions."""
        return np.searchsorted(self.bounds, numbers, "right") - 1

    def _find(self, name: bytes) -> int:
        """The place of the first name that is not before this one."""
        names, ends = self.names.data, self.name_ends.data  # read faster than through numpy

        def name_at(place: int) -> bytes:
            return names[ends[place] : ends[place + 1]].tobytes()

        return bisect_left(range(len(ends) - 1), name, key=name_at)

    def _name(self, place: int) -> bytes:
        return self.names[self.name_ends[place] : self.name_ends[place + 1]].tobytes()

    def _at(self, place: int) -> Numbers:
        numbers = self.places[self.name_bounds[place] : self.name_bounds[place + 1]]
        if len(numbers) and numbers.max() >= self.bounds[-1]:
            raise files.Damaged("a name has a definition that is not there")
        return numbers


def lines_of(symbols: Iterable[Symbol]) -> list[bytes]:
    """The definitions in a file by line, outer before inner, as lines of frames."""
    by_line = sorted(symbols, key=lambda symbol: (symbol.start_line, -symbol.end_line))
    return [line_of(_FIELDS(symbol)) for symbol in by_line]


def folded(name: str) -> bytes:
    """A name as names are compared."""
    return name.encode("utf-8", "surrogatepass").lower()


def _ends(items: Sequence[Sequence[object]]) -> Numbers:
    return np.cumsum([0, *map(len, items)]).astype(np.uint32)
