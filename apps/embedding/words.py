"""The words of a text, as the weights of the built-in embedder know them.

`parseHTTPResponse_v2` gives pars, http, respons, v, 2: identifiers fall into their parts, all is
lowered, and a light stemmer takes common endings off.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

# Between lower and upper case, and between an acronym and the word that follows it.
_BORDER = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[a-z]+|[0-9]+")

LONGEST_WORD = 24
_ENDINGS = ("ings", "ing", "ies", "ied", "es", "ed", "s")
_SHORTEST_STEM = 3


def stem(word: str) -> str:
    """The stem of a lower-case word: `parsing`, `parsed` and `parses` share one."""
    if len(word) > LONGEST_WORD:
        return word[:LONGEST_WORD]
    if len(word) < 5:
        plural = len(word) == 4 and word[-1] == "s" and word[-2] != "s"
        return word[:-1] if plural else word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return _without(ending, word)
    return word.removesuffix("e")


def _without(ending: str, word: str) -> str:
    if ending == "s" and word[-2] in "su":
        return word  # class, status
    if ending in ("ies", "ied"):
        return word[:-3] + "y"
    rest = word.removesuffix(ending)
    doubled = len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "ls"
    if doubled and ending != "s":
        rest = rest[:-1]  # running, but not telling
    return rest[:-1] if len(rest) > 3 and rest[-1] == "e" else rest


def _parts(run: str) -> list[str]:
    return [stem(word) for word in _WORD.findall(_BORDER.sub(" ", run).lower())]


class RunCache(dict[str, tuple[str, ...]]):
    """What each run of letters seen lately falls into: code repeats its names, most are known."""

    LIMIT = 100_000

    def __init__(self, split: Callable[[str], Iterable[str]]) -> None:
        super().__init__()
        self._split = split

    def __missing__(self, run: str) -> tuple[str, ...]:
        if len(self) >= self.LIMIT:
            self.clear()
        found = self[run] = tuple(self._split(run))
        return found


class Runs:
    """Finds the runs of some characters in a text: of those that a pattern matches, none blank."""

    def __init__(self, character: str) -> None:
        self._findall = re.compile(f"{character}+").findall
        kept = map(re.compile(character).match, map(chr, range(128)))
        self._blanks = bytes(code if found else 32 for code, found in enumerate(kept)).ljust(256)

    def __call__(self, text: str) -> list[str]:
        # Splitting takes a fifth of the time, and most texts are ASCII.
        if text.isascii():
            return text.encode().translate(self._blanks).decode().split()
        return self._findall(text)


# Runs that may hold words. The two letters at the end are the only ones outside ASCII whose lower
# case has an ASCII letter (dotted capital I, Kelvin sign).
runs = Runs("[A-Za-z0-9\u0130\u212a]")
stems_of = RunCache(_parts)


def stems(text: str) -> Iterator[str]:
    """The stems of a text in order, repeated as often as they stand in it."""
    return chain.from_iterable(map(stems_of.__getitem__, runs(text)))
