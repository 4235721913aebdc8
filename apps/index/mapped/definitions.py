"""The definitions in the files of a part, and their names in order.

Names are found in any case of ASCII letters: letters of other alphabets have to be equal.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.code.values import Symbol
from apps.index.mapped import files
from apps.index.mapped.framed_rows import FramedRows, first_of, line_of

Numbers = NDArray[np.uint32]
Prefixes = NDArray[np.uint64]  # (k,)
_FIRST_LINE = 3  # of the fields of a line
# What a line of version 6 has.
_EARLIER = ("name", "path", "kind", "first line", "last line", "signature")
# Stands for a text that is the name, or that is not there.
_NONE = 0
# Marks the place of several numbers.
SEVERAL = 1 << 31
# Bytes of a prefix of a name: those of a number.
_HEAD = 8
# Each byte of a name, as names are compared.
_FOLDED = np.frombuffer(bytes(range(256)).lower(), np.uint8)
# Stands after each name that a chunk declares: they have no spaces.
AFTER_NAME = b" "
# Longer names are compared by so many bytes.
_MAX_BYTES = (1 << 16) - 1
# Sorts behind whatever begins with a prefix.
_LAST = "\U0010ffff"


class Definitions(NamedTuple):
    """d definitions of m files, one file after the other, and their k distinct names.

    content, ends: the definitions (`FramedRows`, `lines_of`)
    bounds: uint32 (m + 1,); the definitions of file i are `bounds[i]` to `bounds[i + 1]`
    names: uint8, UTF-8 of the names that chunks declare, chunk after chunk, each before AFTER_NAME;
        then the others
    name_starts, name_sizes: uint32 and uint16 (k,), the bytes of each name in `names`, in the order
        of these in lower case
    numbers: uint32 (k,), the number of the definition of each name; of a name with several, SEVERAL
        and a place in
    places: uint32, for each such name, how many it has, and then their numbers, ascending
    """

    content: NDArray[np.uint8]
    ends: Numbers
    bounds: Numbers
    names: NDArray[np.uint8]
    name_starts: Numbers
    name_sizes: NDArray[np.uint16]
    numbers: Numbers
    places: Numbers

    @classmethod
    def of(cls, of_files: Sequence[Sequence[bytes]], declared: bytes) -> "Definitions":
        """of_files: the definitions in each file, as lines of frames; declared: as `names`"""
        lines = [definition for of_file in of_files for definition in of_file]
        numbers: dict[bytes, list[int]] = {}
        for number, line in enumerate(lines):
            numbers.setdefault(_name_in(line), []).append(number)
        names = sorted(numbers)
        places = list[int]()
        for of_name in [numbers[name] for name in names]:
            if len(of_name) > 1:
                places += [len(of_name), *of_name]
                of_name[0] = SEVERAL | (len(places) - len(of_name) - 1)
        starts = list(map(_starts(declared).get, names))
        others = [name for name, start in zip(names, starts, strict=True) if start is None]
        of_others = iter((_ends(others).astype(np.intp) + len(declared)).tolist())
        return cls(
            *FramedRows.of(lines),
            _ends(of_files),
            np.frombuffer(declared + b"".join(others), np.uint8),
            np.array([next(of_others) if at is None else at for at in starts], np.uint32),
            np.array(list(map(len, names)), np.uint16),
            np.array([numbers[name][0] for name in names], np.uint32),
            np.array(places, np.uint32),
        )

    @property
    def rows(self) -> FramedRows:
        return FramedRows(self.content, self.ends)

    def read(self, numbers: Sequence[int]) -> list[Any]:
        """The rows of some definitions: name, path, kind, first and last line, signature."""
        return list(map(_row, self.rows.read(numbers)))

    def named(self, name: str) -> Numbers:
        """The definitions of a name in any case."""
        return self._named(folded(name), 0, len(self.name_starts))

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
        starts = self.name_starts.astype(np.int64)
        prefixes = np.zeros(len(starts), np.uint64)
        for at in range(_HEAD if len(self.names) else 0):
            letters = _FOLDED[self.names.take(starts + at, mode="clip")].astype(np.uint64)
            prefixes = prefixes << np.uint64(8) | np.where(at < self.name_sizes, letters, 0)
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
        letters = _FOLDED[self.names]
        pairs = letters[:-1].astype(np.uint16) << 8 | letters[1:]
        before = np.zeros(len(self.names) + 1, np.int32)  # how many begin before each byte
        np.cumsum(is_pair[pairs], dtype=np.int32, out=before[1:-1])
        starts, lengths = self.name_starts.astype(np.int64), self.name_sizes.astype(np.int64)
        # The last pair of a name begins before its last byte; what begins there is of two names.
        shared = before[starts + np.maximum(lengths - 1, 0)] - before[starts]
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
            return self.read(numbers)

        row = self.rows.one_by_one()

        def begins(number: int) -> int:
            return int(row(number)[_FIRST_LINE])

        following = map(row, numbers[bisect_left(numbers, lines[0], key=begins) :])
        return list(map(_row, takewhile(lambda line: line[_FIRST_LINE] <= lines[1], following)))

    def files_of(self, numbers: Numbers) -> NDArray[np.intp]:
        """The file of each of some definitions."""
        return np.searchsorted(self.bounds, numbers, "right") - 1

    def _find(self, name: bytes) -> int:
        """The place of the first name that is not before this one."""
        return bisect_left(range(len(self.name_starts)), name, key=self._name_at)

    @property
    def _name_at(self) -> Callable[[int], bytes]:
        """The name at a place, as names are compared."""
        # Read faster than through numpy.
        names, starts, sizes = self.names.data, self.name_starts.data, self.name_sizes.data
        return lambda place: names[(at := starts[place]) : at + sizes[place]].tobytes().lower()

    def _at(self, place: int) -> Numbers:
        """The definitions of the name at a place."""
        numbers = self.numbers[place : place + 1]
        if (number := numbers.item()) & SEVERAL:
            start = (number ^ SEVERAL) + 1
            count = int(self.places[start - 1 : start].sum())  # 0 if the place is not there
            numbers = self.places[start : start + count]
        if not len(numbers) or numbers.max() >= self.bounds[-1]:
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
    """The definitions in a file by line, outer before inner, as lines of frames.

    A line has name, path, kind, first line, number of lines after it, and the signature before and
    after the name: what it does not repeat takes no space.
    """
    by_line = sorted(symbols, key=lambda symbol: (symbol.start_line, -symbol.end_line))
    return [line_of(_line(symbol)) for symbol in by_line]


def _line(symbol: Symbol) -> tuple[str | int, ...]:
    name, start = symbol.name, symbol.start_line
    path = _NONE if symbol.path == name else symbol.path
    has_name = bool(name) and name in symbol.signature
    before, _, after = symbol.signature.partition(name) if has_name else (symbol.signature, "", 0)
    return name, path, symbol.kind, start, symbol.end_line - start, before, after


def _row(line: Sequence[Any]) -> list[Any]:
    if len(line) == len(_EARLIER):
        return list(line)
    name, path, kind, start, others, before, after = line
    signature = before if after == _NONE else f"{before}{name}{after}"
    return [name, name if path == _NONE else path, kind, start, start + others, signature]


def utf8(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def folded(name: str) -> bytes:
    """A name as names are compared."""
    return utf8(name).lower()[:_MAX_BYTES]


def _name_in(line: bytes) -> bytes:
    """The name of a definition, as names are compared."""
    name = line[len('["') : line.index(b'"', len('["'))]
    # Of one with an escaped character, this is not the end.
    return folded(first_of(line)) if b"\\" in name else name.lower()[:_MAX_BYTES]


def _starts(declared: bytes) -> dict[bytes, int]:
    """Each name that a chunk declares, as names are compared, and where it begins."""
    names = declared.lower().split(AFTER_NAME)[:-1]
    sizes = np.fromiter(map(len, names), np.intp, len(names)) + len(AFTER_NAME)
    return dict(zip(names, (np.cumsum(sizes) - sizes).tolist(), strict=True))


def _ends(items: Sequence[Sequence[object]]) -> Numbers:
    return np.cumsum([0, *map(len, items)]).astype(np.uint32)
