"""The code in a page of Razor: the blocks `@code { … }` and `@functions { … }`, which are the
members of a class.

It is copied to a text as long as the page that is blank elsewhere, so that bytes, rows and columns
are those of the page. In it each block is the body of a class WRAPPER.
"""

import re

GRAMMARS = {"razor": "csharp"}
WRAPPER = "_"
_NOT_A_BREAK = re.compile(rb"[^\n]")
_CODE_BLOCK = re.compile(rb"(?m)^[ \t]*(@(?:code|functions))\s{0,200}\{")
# Comments, strings and braces of C#. Each branch matches to the end of the text, if need be, so
# that it is linear.
_TOKEN = re.compile(
    rb'//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)|"""(?:[^"]|"(?!""))*(?:"""|\Z)'
    rb'|@\$?"(?:[^"]|"")*(?:"|\Z)|"(?:[^"\\\n]|\\[^\n]?)*(?:"|(?=\n)|\Z)'
    rb"|'(?:[^'\\\n]|\\[^\n]?){1,10}'|[{}]"
)


def razor_code(page: bytes) -> bytes:
    """The code of a page."""
    text, at = bytearray(_NOT_A_BREAK.sub(b" ", page)), 0
    while block := _CODE_BLOCK.search(page, at):
        start, end = block.start(1), _end_of(page, block.end())
        text[start:end] = page[start:end]
        # What is before `@code` gives its place to the keyword.
        room, head = text.rfind(b"      ", at, start), b"class"
        if block[1] != b"@code":
            head = f"class {WRAPPER}".encode()
        elif room >= 0:
            text[room : room + 5], head = b"class", WRAPPER.encode()
        text[start : block.end(1)] = head.ljust(block.end(1) - start)
        at = end
    return bytes(text)


def _end_of(page: bytes, start: int) -> int:
    """The offset after the brace that ends a block. start: after the brace that begins it"""
    depth = 1
    for token in _TOKEN.finditer(page, start):
        depth += (token[0] == b"{") - (token[0] == b"}")
        if not depth:
            return token.end()
    return len(page)
