"""The operations (`GET /pets`) and schemas of OpenAPI 2 and 3: in YAML by its indentation, and in
JSON and the flow style of YAML by brackets, however they are broken into lines.

Takes time linear in the size of the file, also if it is malformed.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from itertools import accumulate

from apps.code.syntax.pieces import Definition
from apps.code.values import words

METHODS = words("get put post delete options head patch trace query")
# Schemas of versions 3 and 2.
SCHEMAS = (("components", "schemas"), ("definitions",))
MAX_TITLE = 120
MAX_LINE = 400  # characters in which a key is looked for
_MARKER = re.compile(
    r"(?:^[ \t]{0,4}|[{,]\s{0,40})[\"']?(?:openapi|swagger)[\"']?[ \t]{0,4}:[ \t]{0,4}[\"']?[1-9]",
    re.MULTILINE,
)
# Brackets, commas, colons after keys, and scalars. Each branch of a string matches to the end of
# the text, if need be.
_TOKEN = re.compile(
    r"[{}\[\],]|(?<=[\"']):|:(?=[\s,\[\]{}]|\Z)"
    r"|\"(?:[^\"\\]|\\.?)*(?:\"|\Z)|'[^']*(?:'|\Z)"
    r"|(?:[^\s{}\[\],:]|:(?![\s,\[\]{}]|\Z))+",
    re.DOTALL,
)


def block_of(name: str, kind: str, first: int, last: int) -> Definition:
    """A part of a file that has no other parts. Rows are 0-based, the last one is included."""
    return Definition(name, kind, first, last, -1, name)


def of_openapi(lines: Sequence[str]) -> Iterator[Definition]:
    """The operations and schemas of a file; none of another file."""
    text = "\n".join(lines)
    # Most files have neither word, which is quicker to see.
    if not (("openapi" in text or "swagger" in text) and _MARKER.search(text)):
        return
    starts = [*accumulate((len(line) + 1 for line in lines), initial=0)]
    open_keys: list[tuple[int, str]] = []  # indent and key, outer before inner
    current: Definition | None = None
    indent_of_current = last = row = 0
    while row < len(lines):
        line, row = lines[row], row + 1
        if not (stripped := line.strip()) or stripped.startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        if current and indent <= indent_of_current:
            yield current._replace(last=row - 1 if stripped[0] in "}]" else last)
            current = None
        last = row - 1
        key, value = _key(stripped[:MAX_LINE])
        while key and open_keys and open_keys[-1][0] >= indent:
            open_keys.pop()
        open_keys += [(indent, key)] if key else []
        keys = tuple(key for _, key in open_keys)
        if key and (found := _block(keys)):
            current, indent_of_current = block_of(*found, row - 1, row - 1), indent
        # Deeper ones have no blocks, but may be text.
        if value[:1] == "{" and len(keys) < 3 and (key or not keys):
            start = starts[row - 1] + indent + len(stripped[:MAX_LINE]) - len(value)
            last = row = yield from _in_brackets(text, start, row - 1, keys)
            row += 1
    if current:
        yield current._replace(last=last)


def _key(line: str) -> tuple[str, str]:
    """The key at the beginning of a line of YAML, "" if there is none, and what follows it to the
    end of the line."""
    quote = line[0]
    if quote in "\"'":
        end = line.find(quote, 1)
        rest = line[end + 1 :].lstrip()
        return (line[1:end], rest[1:].lstrip()) if end > 0 and rest.startswith(":") else ("", "")
    if quote in "-{[":
        return "", line
    name, colon, value = f"{line} ".partition(": ")
    return (name.rstrip(), value[:-1].lstrip()) if colon else ("", "")


def _in_brackets(
    text: str, at: int, row: int, outer: tuple[str, ...]
) -> Generator[Definition, None, int]:
    """Yield the blocks of a value in brackets, and return its last row.

    at: offset of its first bracket; row: that it is in; outer: the keys that lead to it
    """
    opened: list[str] = []  # brackets
    keys = [*outer]  # and the key of each bracket
    current: Definition | None = None
    depth = begun = last = 0  # of the current block, the row of a key, and of the token before
    key = ""
    for token in _TOKEN.finditer(text, at):
        word, last = token[0], row
        row += text.count("\n", at, token.start())
        at = token.start()
        if word in ("{", "["):
            opened.append(word)
            keys.append("")
        elif word in ("}", "]", ","):
            if current and len(opened) == depth:
                yield current._replace(last=last)
                current = None
            if word != ",":
                opened.pop()
                keys.pop()
            if not opened:
                return row
        elif word != ":":
            key, begun = word.strip("\"'"), row
            row += word.count("\n")
            at = token.end()
        elif opened[-1] == "{":
            keys[-1] = key
            is_deep = len(keys) > 3 or "[" in opened
            if not is_deep and (found := _block(tuple(keys))):
                current, depth = block_of(*found, begun, begun), len(opened)
    return row


def _block(keys: tuple[str, ...]) -> tuple[str, str] | None:
    """The name and kind of what these keys lead to."""
    if len(keys) == 3 and keys[0] in ("paths", "webhooks") and keys[2].lower() in METHODS:
        return f"{keys[2].upper()} {keys[1]}"[:MAX_TITLE], "operation"
    if keys[:-1] in SCHEMAS:
        return keys[-1][:MAX_TITLE], "schema"
    return None
