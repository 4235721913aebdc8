"""Find a name where it is an identifier: not in comments, strings or other text."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from tree_sitter import Node

from apps.code.syntax.code import Code, parse_all
from apps.code.syntax.outline import SIGILS, captures_of, outline, scopes_around
from apps.code.syntax.pieces import Occurrence, whole_word

# Words in the types of nodes that contain text rather than identifiers.
TEXT_WORDS = re.compile(
    r"comment|string|text|quoted|char|content|literal|regex|heredoc|scalar|inline|paragraph|prose"
    r"|number|integer|float|attribute_value|plain"
)


def occurrences(lines: Sequence[str], name: str, grammar: str) -> list[Occurrence]:
    """The identifiers `name` in a file, in order. A faulty grammar may never return."""
    places, size = list(_places(lines, name)), len(name.encode())
    found = [
        occurrence
        for code in parse_all(lines, grammar).values()
        for occurrence in _in_code(code, places, size)
    ]
    return sorted(found, key=lambda occurrence: (occurrence.row, occurrence.column))


def _in_code(code: Code, every: Sequence["_Place"], size: int) -> Iterator[Occurrence]:
    """Those of the places of a name where it is an identifier. size: its bytes"""
    tags = {(tag.start_byte, tag.end_byte) for tag in code.tags}
    places = [
        place
        for place in every
        if (span := (place.byte, place.byte + size)) in tags
        or _is_identifier(code.root, *span)
        or (code.wrapper and code.source[span[0] : span[1]].isspace())
        or _is_left_out(code, *span)
    ]
    captures = captures_of(code)
    file_outline = outline(code, captures)
    ends = {captured.end for captured in captures.names.values()}
    scopes = scopes_around(list(captures.scopes), [place.byte for place in places])
    for place, index in zip(places, scopes, strict=True):
        is_definition = place.byte + size in ends
        yield Occurrence(place.row, place.column, is_definition, file_outline.path(index))


class _Place(NamedTuple):
    row: int  # 0-based
    column: int  # 0-based, in characters
    byte: int  # from the start of the file


def _places(lines: Sequence[str], name: str) -> Iterator[_Place]:
    word = whole_word(name)
    starts = accumulate((len(line.encode()) + 1 for line in lines), initial=0)
    for row, (start, line) in enumerate(zip(starts, lines, strict=False)):
        for match in word.finditer(line) if name in line else ():
            yield _Place(row, match.start(), start + len(line[: match.start()].encode()))


def _is_left_out(code: Code, start: int, end: int) -> bool:
    """Whether a name is left out of what the grammar reads, as macros are."""
    name, begin = code.source[start:end], start - code.root.start_byte
    if code.page or name.isspace():
        return False
    return begin < 0 or (code.root.text or b"")[begin : begin + end - start] != name


def _is_identifier(root: Node, start: int, end: int) -> bool:
    node = root.named_descendant_for_byte_range(start, end)
    if node is None or TEXT_WORDS.search(node.type):
        return False
    return (node.start_byte + SIGILS.get(node.type, 0), node.end_byte) == (start, end)
