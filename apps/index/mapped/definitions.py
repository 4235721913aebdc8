"""The definitions in the files of a part, and their names in order.

Names are found in any case of ASCII letters: letters of other alphabets have to be equal.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, takewhile
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.code.values import Symbol
from apps.index.mapped import files
from apps.index.mapped.framed_rows import FramedRows, first_of, line_of

Numbers = NDArray[np.uint32]
Prefixes = NDArray[np.uint64]  # (k,)
_FIELDS = attrgetter("name", "path", "kind", "start_line", "end_line", "signature")
_FIRST_LINE = 3  # of the fields
# Bytes of a prefix of a name: those of a number.
_HEAD = 8
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
            numbers.setdefault(folded(first_of(line)), []).append(number)
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
        return self._named(folded(name), 0, len(self.name_ends) - 1)

    def named_each(self, names: Iterable[str], prefixes: Prefixes) -> list[Numbers]:
        """The definitions of each name in any case. prefixes: as `prefixes` returns them"""
        wanted = [folded(name) for name in names]
        heads = b"".join([name[:_HEAD].ljust(_HEAD, b"\0") for name in wanted])
        numbers = np.frombuffer(heads, ">u8").astype(np.uint64)
        firsts = np.searchsorted(prefixes, numbers, "left").tolist()
        lasts = np.searchsorted(prefixes, numbers, "right").tolist()
        return [self._named(*one) for one in zip(wanted, firsts, lasts, strict=True)]

    def prefixes(self) -> Prefixes:
        """The first _HEAD bytes of each name as a number, ascending. Most names of a text are
        defined nowhere, and no defined name begins as they do."""
        starts, ends = self.name_ends[:-1], self.name_ends[1:]
        prefixes = np.zeros(len(starts), np.uint64)
        for at in range(_HEAD if len(self.names) else 0):
            places = starts.astype(np.int64) + at
            letters = self.names.take(places, mode="clip").astype(np.uint64)
            prefixes = prefixes << np.uint64(8) | np.where(places < ends, letters, np.uint64(0))
        return prefixes

    def _named(self, wanted: bytes, first: int, last: int) -> Numbers:
        """The definitions of a name, as names are compared, whose place is in a range."""
        if first < last:
            name_at = self._name_at
            place = bisect_left(range(last), wanted, lo=first, key=name_at)
            if place < last and name_at(place) == wanted:
                return self._at(place)
        return self.places[:0]

    def beginning(self, prefix: str) -> Iterator[tuple[bytes, Numbers]]:
        """The names that begin with a prefix in any case, in order, each with its definitions."""
        name_at = self._name_at
        for place in range(self._find(folded(prefix)), self._find(folded(prefix + _LAST))):
            yield name_at(place), self._at(place)

    def alike(self, name: str, n: int) -> list[tuple[bytes, Numbers]]:
        """The n names of about the length of a name that have most pairs of neighbouring bytes in
        common with it, each with its definitions. Two bytes of it may be swapped."""
        wanted = folded(name)
        is_pair = _pairs_of(wanted)
        pairs = self.names[:-1].astype(np.uint16) << 8 | self.names[1:]
        before = np.zeros(len(self.names) + 1, np.int32)  # how many begin before each byte
        np.cumsum(is_pair[pairs], dtype=np.int32, out=before[1:-1])
        starts, ends = self.name_ends[:-1].astype(np.int64), self.name_ends[1:].astype(np.int64)
        lengths = ends - starts
        # The last pair of a name begins before its last byte; what begins there has two names.
        shared = before[np.maximum(ends - 1, starts)] - before[starts]
        is_near = np.abs(lengths - len(wanted)) <= len(wanted) // 3
        near = np.flatnonzero(is_near & (shared > 0))
        scores = shared[near] / (lengths[near] + len(wanted))
        best = near[np.argsort(-scores, kind="stable")[:n]]
        name_at = self._name_at
        return [(name_at(place), self._at(place)) for place in best.tolist()]

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

        following = map(row, numbers[bisect_left(numbers, lines[0], key=begins) :])
        return list(takewhile(lambda values: values[_FIRST_LINE] <= lines[1], following))

    def files_of(self, numbers: Numbers) -> NDArray[np.intp]:
        """The file of each of some definitions."""
        return np.searchsorted(self.bounds, numbers, "right") - 1

    def _find(self, name: bytes) -> int:
        """The place of the first name that is not before this one."""
        return bisect_left(range(len(self.name_ends) - 1), name, key=self._name_at)

    @property
    def _name_at(self) -> Callable[[int], bytes]:
        """The name at a place."""
        names, ends = self.names.data, self.name_ends.data  # read faster than through numpy
        return lambda place: names[ends[place] : ends[place + 1]].tobytes()

    def _at(self, place: int) -> Numbers:
        numbers = self.places[self.name_bounds[place] : self.name_bounds[place + 1]]
        if len(numbers) and numbers.max() >= self.bounds[-1]:
            raise files.Damaged("a name has a definition that is not there")
        return numbers


def _pairs_of(name: bytes) -> NDArray[np.bool_]:
    """bool (65536,): which pairs of neighbouring bytes a name has, and has with two of them
    swapped."""
    swapped = (name[:at] + name[at : at + 2][::-1] + name[at + 2 :] for at in range(len(name) - 1))
    is_pair = np.zeros(1 << 16, np.bool_)
    for spelling in (name, *swapped):
        is_pair[[high << 8 | low for high, low in pairwise(spelling)]] = True
    return is_pair


def lines_of(symbols: Iterable[Symbol]) -> list[bytes]:
    """The definitions in a file by line, outer before inner, as lines of frames."""
    by_line = sorted(symbols, key=lambda symbol: (symbol.start_line, -symbol.end_line))
    return [line_of(_FIELDS(symbol)) for symbol in by_line]


def folded(name: str) -> bytes:
    """A name as names are compared."""
    return name.encode("utf-8", "surrogatepass").lower()


def _ends(items: Sequence[Sequence[object]]) -> Numbers:
    return np.cumsum([0, *map(len, items)]).astype(np.uint32)
