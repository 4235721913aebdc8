"""References in text: `path:12-30`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Unicode whitespace: in RE2 `\s` is ASCII only, and models write thin spaces.
SPACE = "\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SPAN = rf"(?P<start>\d{{1,7}})(?:[{SPACE}]?[-–][{SPACE}]?L?(?P<end>\d{{1,7}}))?"
_COLUMN = r"(?::\d{1,5})?"
# In running text a path ends at the first blank or bracket; inside backticks it may hold anything.
# The lines are found first, and the path is what stands before them: a search for paths would look
# through a long word anew at each of its letters.
_END = r"(?!\w|:\w)"
# As answers have them, too: `, lines 10-12` and ` (lines 10-12)`, after a path that may be bold or
# code.
_IN_WORDS = rf",?[{SPACE}]lines?[{SPACE}]"
_IN_BRACKETS = (
    rf"[{SPACE}]\(lines?[{SPACE}]"
    rf"(?P<first>\d{{1,7}})(?:[{SPACE}]?[-–][{SPACE}]?L?(?P<last>\d{{1,7}}))?\)"
)
LINES_IN_WORDS = re.compile(rf"(?:{_IN_WORDS}{_SPAN}|{_IN_BRACKETS}){_END}")
_MARKS = "[`*]{0,3}"
_CITED_LINES = re.compile(
    rf"(?<=\w)(?:(?P<sign>:L?|#L|{_MARKS}{_IN_WORDS}){_SPAN}{_COLUMN}|{_MARKS}{_IN_BRACKETS}){_END}"
)
_PATH_BACKWARDS = re.compile(r"[\w./@+\\-]+")
ANY_REFERENCE = rf"(?P<path>[^\n]+?)(?::L?|#L){_SPAN}"
MORE_LINES = re.compile(rf",[{SPACE}]?L?{_SPAN}")
# More lines after a reference. In running text a number alone may count something else.
_RANGE = rf",[{SPACE}]?L?\d{{1,7}}[-–]L?\d{{1,7}}"
_FURTHER = re.compile(
    rf"(?:,[{SPACE}]?L?\d{{1,7}}(?:[-–]L?\d{{1,7}})?)+(?=`)|(?:{_RANGE}(?![\w-]|[.:]\w))+"
)
WHOLE_REFERENCE = re.compile(
    rf"\A{ANY_REFERENCE}{_COLUMN}(?P<more>(?:,[{SPACE}]?L?\d{{1,7}}(?:[-–]L?\d{{1,7}})?)*)"
    r"(?P<mark>[,;.:]?)\Z"
)


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


def span_of(lines: re.Match[str]) -> tuple[int, int | None]:
    """The first and the last line that a match names."""
    numbers = lines.groupdict()
    first, last = (
        numbers[name] or numbers.get(other) for name, other in (("start", "first"), ("end", "last"))
    )
    return int(first or 0), int(last) if last else None


def references(text: str, *, addresses: bool = False) -> Iterator[Reference]:
    """The references in running text, in order; linear in its length. addresses: also those with
    their lines as addresses have them, `#L10-L12`."""
    colon = end = 0
    for lines in _CITED_LINES.finditer(text):
        if lines["sign"] == "#L" and not addresses:
            continue
        stop = lines.start()
        # No path holds a colon, so no letter is looked at twice.
        before = _PATH_BACKWARDS.match(text[colon:stop][::-1])
        begin = stop - before.end() if before else stop
        if begin < end:
            # What directly follows a reference is no path, but for what a plus sign sets apart.
            begin = text.find("+", end, stop) + 1 or stop
        colon = stop + 1
        if begin < stop:
            path = text[begin:stop].replace("\\", "/")
            end = lines.end()
            yield Reference(path, *span_of(lines), begin, end)
            further = _FURTHER.match(text, end)
            for more in MORE_LINES.finditer(text, end, further.end() if further else end):
                first, last = span_of(more)
                if last is not None and last < first:
                    break  # a date, 2024-11
                end = more.end()
                yield Reference(path, first, last, more.start("start"), end)
