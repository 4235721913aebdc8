"""Stems of the words of a text, for the built-in embedder and the index.

Identifiers are split into their parts, lower-cased, and stemmed by removing common suffixes:
`parseHTTPResponse_v2` has the stems `pars`, `http`, `respons`, `v`, `2`. The weights of the
embedder are keyed by these stems, so a change here needs new weights.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

# Between lower and upper case, and between an acronym and the next word.
BOUNDARY = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[a-z]+|[0-9]+")

LONGEST_WORD = 24
_SUFFIXES = ("ings", "ing", "ies", "ied", "es", "ed", "s")
_LAST = ("s", "g", "d")  # that any of them ends with
_MIN_STEM = 3


def stem(word: str) -> str:
    """The stem of a lower-case word: `pars` for `parsing`, `parsed` and `parses`."""
    if len(word) > LONGEST_WORD:
        return word[:LONGEST_WORD]
    if len(word) < 5:
        plural = len(word) == 4 and word[-1] == "s" and word[-2] != "s"
        return word[:-1] if plural else word
    if word.endswith(_LAST):
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= _MIN_STEM:
                return _without(suffix, word)
    return word.removesuffix("e")


def _without(suffix: str, word: str) -> str:
    if suffix == "s" and word[-2] in "su":
        return word  # class, status
    if suffix in ("ies", "ied"):
        return word[:-3] + "y"
    rest = word.removesuffix(suffix)
    doubled = len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "ls"
    if doubled and suffix != "s":
        rest = rest[:-1]  # running, but not telling
    return rest[:-1] if len(rest) > 3 and rest[-1] == "e" else rest


def _parts(run: str) -> list[str]:
    if run.isascii() and run.isalpha() and (run.islower() or run.isupper()):
        return [stem(run.lower())]  # most runs of code, without the patterns
    return [stem(word) for word in _WORD.findall(BOUNDARY.sub(" ", run).lower())]


class RunCache(dict[str, tuple[str, ...]]):
    """A cache of the words in each run of characters: most names in code are repeated."""

    LIMIT = 100_000

    def __init__(self, split: Callable[[str], Iterable[str]]) -> None:
        super().__init__()
        self._split = split

    def __missing__(self, run: str) -> tuple[str, ...]:
        if len(self) >= self.LIMIT:
            self.clear()
        words = self[run] = tuple(self._split(run))
        return words


class Runs:
    """Finds the runs of characters that match a pattern. The pattern must not match blanks."""

    def __init__(self, character: str) -> None:
        self._findall = re.compile(f"{character}+").findall
        matches = map(re.compile(character).match, map(chr, range(128)))
        blanks = [c if match else 32 for c, match in enumerate(matches)]
        self._blanks = bytes(blanks).ljust(256)

    def __call__(self, text: str) -> list[str]:
        # Most texts are ASCII, and splitting them takes a fifth of the time of the pattern.
        if text.isascii():
            return text.encode().translate(self._blanks).decode().split()
        return self._findall(text)


# Runs that may contain words. The last two characters (dotted capital I, Kelvin sign) are the only
# ones outside ASCII whose lower case has an ASCII letter.
runs = Runs("[A-Za-z0-9\u0130\u212a]")
stems_of = RunCache(_parts)


def stems(text: str) -> Iterator[str]:
    """The stems of a text in order, with repetitions."""
    return chain.from_iterable(map(stems_of.__getitem__, runs(text)))
