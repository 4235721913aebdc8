"""N-grams, and what of them a text must have to match a pattern.

The n-grams are of normal bytes (`normalized`), which serves patterns of either case and any run of
whitespace with one index. A line break stands before and after each line of a text.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Marks three bytes, which any fourth may follow.
TRIGRAM = 1 << 32
# What a string of a pattern may have in place of a character: the ends of a line. Surrogates, as
# no pattern has them.
LINE_START, LINE_END = "\ud800", "\ud801"
WHITESPACE = " \t\r\f\v"  # in a line
_KELVIN, _LONG_S = "\u212a".encode(), "\u017f".encode()
_BREAK = ord("\n")
_SPACES = re.compile(b" {2,}")
_NORMAL = bytes(range(256)).lower().translate(bytes.maketrans(b"\t\r\f\v", b"    "))


def folded(data: bytes) -> bytes:
    """The bytes without differences of case that a pattern may ignore: ASCII letters, and the two
    other characters that RE2 takes for `k` and `s`. Each whitespace in a line is a space."""
    if not data.isascii():
        data = data.replace(_KELVIN, b"k").replace(_LONG_S, b"s")
    return data.translate(_NORMAL)


def normalized(data: bytes) -> bytes:
    """Folded bytes with one space in place of each run of whitespace in a line.

    If a text has a string, the normal text has the normal string.
    """
    return _SPACES.sub(b" ", folded(data))


def grams_of(data: bytes) -> frozenset[int]:
    """The n-grams that a text has if its normal bytes have `data`: four bytes as an integer of 32
    bits, with a line break at most as the first or the last. Of three bytes at the end that none
    begins with, TRIGRAM with these in the place of the first three."""
    starts = [at for at in range(len(data) - 2) if _BREAK not in data[at + 1 : at + 3]]
    whole = frozenset(int.from_bytes(data[at : at + 4]) for at in starts if at + 4 <= len(data))
    last = len(data) - 3
    if last not in starts or last - 1 in starts:
        return whole
    return whole | {TRIGRAM | int.from_bytes(data[last:]) << 8}


@dataclass(frozen=True)
class Required:
    """N-grams (`grams_of`) that a text must have: all of `grams`, and for each of `either` one of
    its parts.

    Without both it requires nothing.
    """

    grams: frozenset[int] = frozenset()
    either: tuple[tuple["Required", ...], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.grams or self.either)

    def all_grams(self) -> set[int]:
        """Every n-gram that is named anywhere."""
        inner = (part.all_grams() for parts in self.either for part in parts)
        return set(self.grams).union(*inner)

    def also(self, other: "Required") -> "Required":
        return Required(self.grams | other.grams, self.either + other.either)


ANY = Required()


def one_of(parts: Iterable[Required]) -> Required:
    """What is required if one of the parts is."""
    distinct = tuple(dict.fromkeys(parts))
    if not all(distinct):
        return ANY
    if len(distinct) == 1:
        return distinct[0]
    common = frozenset.intersection(*(part.grams for part in distinct))
    rest = tuple(dict.fromkeys(Required(part.grams - common, part.either) for part in distinct))
    return Required(common, (rest,) if all(rest) else ())


def of_strings(strings: Iterable[str]) -> Required:
    """What is required if a text has one of the strings."""
    encoded = set(map(_bytes_of, strings))
    # A text with a longer string has what is in it, too.
    least = [
        string for string in sorted(encoded) if not any(o in string for o in encoded if o != string)
    ]
    return one_of(Required(grams_of(string)) for string in least)


def _bytes_of(text: str) -> bytes:
    """The normal bytes of a string, with a line break where an end of a line is at its start or
    end. Inside, that end says nothing."""
    inner = text.lstrip(LINE_START)
    before = "\n" * (inner != text)
    stripped = inner.rstrip(LINE_END)
    after = "\n" * (stripped != inner)
    plain = stripped.replace(LINE_START, "").replace(LINE_END, "")
    return normalized((before + plain + after).encode("utf-8", "replace"))
