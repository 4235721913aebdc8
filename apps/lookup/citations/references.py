"""References in text: `path:12-30`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Unicode whitespace: in RE2 `\s` is ASCII only, and models write thin spaces.
SPACE = "\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_LINES = rf":L?(?P<start>\d{{1,7}})(?:[{SPACE}]?[-–][{SPACE}]?L?(?P<end>\d{{1,7}}))?"
# In running text a path ends at the first blank or bracket; inside backticks it may hold anything.
# The lines are found first, and the path is what stands before them: a search for paths would look
# through a long word anew at each of its letters.
_CITED_LINES = re.compile(r"(?<=\w)" + _LINES + r"(?![\w:])")
_PATH_BACKWARDS = re.compile(r"[\w./@+-]+")
ANY_REFERENCE = r"(?P<path>[^\n]+?)" + _LINES
WHOLE_REFERENCE = re.compile(rf"\A{ANY_REFERENCE}\Z")


@dataclass(frozen=True)
class Reference:
    """`path:first-last` in running text.

    first, last: line numbers; last is None for a single line.
    begin, end: offsets in the text, in characters.
    """

    path: str
    first: int
    last: int | None
    begin: int
    end: int


def references(text: str) -> Iterator[Reference]:
    """The references in running text, in order; linear in its length."""
    colon = end = 0
    for lines in _CITED_LINES.finditer(text):
        stop = lines.start()
        # No path holds a colon, so no letter is looked at twice.
        path = _PATH_BACKWARDS.match(text[colon:stop][::-1])
        begin = stop - path.end() if path else stop
        if begin < end:
            # What directly follows a reference is no path, but for what a plus sign sets apart.
            begin = text.find("+", end, stop) + 1 or stop
        colon = stop + 1
        if begin < stop:
            last = int(lines["end"]) if lines["end"] else None
            yield Reference(text[begin:stop], int(lines["start"]), last, begin, lines.end())
            end = lines.end()
