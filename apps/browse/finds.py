"""The lines of a file that match what led a reader to it: `?find=&how=`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, cast

from apps.browse.marks import words_of
from apps.core.errors import InvalidInput
from apps.embedding.words import stems
from apps.lookup.texts.patterns import MAX_PATTERN, Pattern

MAX_MATCHES = 1_000
WORD = re.compile(r"\w+")
How = Literal["", "text", "regex"]


def find_params(text: str, how: How = "") -> dict[str, str]:
    """The parameters of a link to lines that a text led to; none if it cannot be looked for."""
    if not text or len(text) > MAX_PATTERN or "\0" in text:
        return {}
    return {"find": text, "how": how} if how else {"find": text}


@dataclass(frozen=True)
class Find:
    """What to look for in a file.

    text: "" if nothing is looked for.
    how: `text` is looked for as it is, `regex` as Grep reads it. "": as it is in any case; if no
    line has it, its words, as a search finds them.
    """

    text: str = ""
    how: How = ""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Find":
        """Read `find, how`. Invalid values count as missing: a link is not a form."""
        text, how = str(data.get("find") or ""), data.get("how")
        if not find_params(text):
            return cls()
        return cls(text, cast(How, how) if how in ("text", "regex") else "")

    @property
    def params(self) -> dict[str, str]:
        """The parameters of a URL."""
        return find_params(self.text, self.how)

    @property
    def name(self) -> str:
        """The name to mark in the lines; "" if the text is a word of English, or several."""
        is_name = self.how == "text" or "_" in self.text or self.text != self.text.lower()
        return self.text if is_name and WORD.fullmatch(self.text) else ""

    @property
    def words(self) -> frozenset[str]:
        """The stems to mark in the lines of a text that is neither a name nor a pattern."""
        return frozenset() if self.name or self.how == "regex" else words_of(self.text)

    def lines(self, lines: Sequence[str]) -> tuple[list[int], bool]:
        """The numbers (1-based) of the first MAX_MATCHES lines that match, and whether there are
        more."""
        numbers = self._numbers(lines) if self.text else iter(())
        first = list(islice(numbers, MAX_MATCHES + 1))
        return first[:MAX_MATCHES], len(first) > MAX_MATCHES

    def _numbers(self, lines: Sequence[str]) -> Iterator[int]:
        pattern = Pattern(self.text, fixed=self.how != "regex", ignore_case=not self.how)
        try:
            numbers = _matching(pattern, lines)
        except InvalidInput:  # the pattern of a tool call that failed
            return iter(())
        if numbers or self.how:
            return iter(numbers)
        words = words_of(self.text)
        return (n for n, line in enumerate(lines, 1) if words and words.intersection(stems(line)))


def _matching(pattern: Pattern, lines: Sequence[str]) -> list[int]:
    """The numbers of the lines that match, at most one more than MAX_MATCHES. Raises InvalidInput
    BAD_PATTERN."""
    data = "\n".join(lines).encode(errors="replace")
    numbers: list[int] = []
    position, number = 0, 1
    for match in islice(pattern.compiled().matches(data), MAX_MATCHES + 1):
        number += data.count(b"\n", position, match.start)
        position = match.start
        numbers.append(number)
    return numbers
