"""Edits of JSON with comments: one member of an object changes, all other bytes stay as they are.

Comments and trailing commas are read, as VS Code, Zed and opencode write them.
"""

import json
import re
from typing import Any, NamedTuple, NoReturn

MAX_DEPTH = 100
UNSAFE = "it has a form that cannot be changed safely"
SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
# Those that do not end are matched, too, so that no text is read twice.
_STRING = r'"(?:[^"\\]|\\.)*"?'
COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|(\Z))", re.DOTALL)
TRAILING_COMMA = re.compile(rf"({_STRING}|[\w}}\]])(?:(\s*),(?=\s*[}}\]]))?", re.DOTALL)
BRACKET = re.compile(rf"{_STRING}|[\[{{]|[\]}}]", re.DOTALL)
REST_OF_LINE = re.compile(r"[ \t]*(?:/\*[^\n]*?\*/[ \t]*)*(?://[^\n]*)?(?=\r?\n)")
REST_IS_BLANK = re.compile(r"[ \t]*\r?\n")
INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


class Damaged(Exception):
    """The text is not JSON; the message says where."""


class Member(NamedTuple):
    """A member of an object: where its key begins, its value begins, and its value ends."""

    key: str
    start: int
    value_start: int
    end: int


def loads(text: str) -> dict[str, Any]:
    """Return the value of a text; {} if there is nothing but blanks and comments.

    Raises Damaged.
    """
    plain = _plain(text)
    if not plain.strip(" \t\r\n"):
        return {}
    _check_depth(plain)
    try:
        value = json.loads(plain, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise Damaged(f"line {error.lineno}: {error.msg}") from None
    except ValueError as error:  # of a number
        raise Damaged(str(error)) from None
    if not isinstance(value, dict):
        raise Damaged("line 1: an object is expected")
    return value


def _plain(text: str) -> str:
    """Return the text with blanks in place of comments and trailing commas."""
    text = COMMENT.sub(_blank, text)
    return TRAILING_COMMA.sub(lambda one: one[1] if one[2] is None else f"{one[1]}{one[2]} ", text)


def _blank(part: re.Match[str]) -> str:
    """Return blanks as long as a comment that ends, or a string as it is."""
    is_comment = part[1] is None and part[2] is None
    return re.sub(r"[^\n]", " ", part[0]) if is_comment else part[0]


def _check_depth(plain: str) -> None:
    depth = 0
    for bracket in BRACKET.finditer(plain):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(bracket[0], 0)
        if depth > MAX_DEPTH:
            line = plain.count("\n", 0, bracket.start()) + 1
            raise Damaged(f"line {line}: it is nested too deep")


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _members(plain: str, start: int) -> list[Member]:
    """Return the members of the object that begins at `start`."""
    members = []
    decode = json.JSONDecoder().raw_decode
    at = _after_space(plain, start + 1)
    while plain[at] != "}":
        key, end = decode(plain, at)
        begin = _after_space(plain, plain.index(":", end) + 1)
        _, end = decode(plain, begin)
        members.append(Member(key, at, begin, end))
        at = _after_space(plain, end)
        if plain[at] == ",":
            at = _after_space(plain, at + 1)
    return members


def _last(members: list[Member], key: str) -> Member | None:
    """Return the member that counts: if a key is there twice, the last one."""
    return next((one for one in reversed(members) if one.key == key), None)


def _after_space(text: str, at: int) -> int:
    """Return the place after blanks and comments."""
    match = SPACE.match(text, at)
    return match.end() if match else at


def with_member(text: str, key: str, name: str, value: Any) -> str:
    """Return the text with `value` as member `name` of the object `key` of the root.

    Raises Damaged.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    document, plain = loads(text), _plain(text)
    if not plain.strip(" \t\r\n"):
        head = text if not text or text.endswith("\n") else text + newline
        return head + _dumps({key: {name: value}}, "  ", "", newline) + newline
    root = _after_space(plain, 0)
    servers = _last(_members(plain, root), key)
    if servers is None:
        return _inserted(text, root, key, {name: value}, newline)
    if not isinstance(document[key], dict):
        raise Damaged(f"{key} is not an object")
    member = _last(_members(plain, servers.value_start), name)
    if member is None:
        return _inserted(text, servers.value_start, name, value, newline)
    indent = _indent_at(text, member.start)
    new = _dumps(value, _unit(text), indent, newline)
    return text[: member.value_start] + new + text[member.end :]


def without_member(text: str, key: str, name: str) -> str:
    """Return the text without the member `name` of the object `key`. Raises Damaged."""
    while True:
        document, plain = loads(text), _plain(text)
        if not isinstance(document.get(key), dict) or name not in document[key]:
            return text
        servers = _last(_members(plain, _after_space(plain, 0)), key)
        assert servers is not None, "the document has it"
        members = _members(plain, servers.value_start)
        at = max(index for index, one in enumerate(members) if one.key == name)
        text = _cut(text, servers.value_start, members, at)


def _cut(text: str, holder: int, members: list[Member], at: int) -> str:
    start, end = members[at].start, members[at].end
    comma = _after_space(text, end)
    if text.startswith(",", comma):
        # Comments before the comma are the member's.
        end = comma + 1
    elif at:
        # The comma before the last member goes, comments after it stay.
        before = members[at - 1].end
        gap = text[before:start]
        place = _after_space(gap, 0)
        text = text[:before] + gap[:place] + gap[place + 1 :] + text[start:]
        start, end = start - 1, end - 1
    line = text.rfind("\n", 0, start) + 1
    rest = REST_IS_BLANK.match(text, end)
    if text[line:start].strip() == "" and rest and line > holder:
        return text[:line] + text[rest.end() :]
    return text[:start] + text[end:]


def _inserted(text: str, holder: int, key: str, value: Any, newline: str) -> str:
    """Insert a member at the end of the object that begins at `holder`."""
    unit = _unit(text)
    outer = _indent_at(text, holder)
    members = _members(_plain(text), holder)
    if not members:
        indent = outer + unit
        new = newline + indent + _member(key, value, unit, indent, newline)
        rest = text[holder + 1 :]
        closes = rest.lstrip(" \t")
        if closes.startswith("}"):
            rest = newline + outer + closes
        return text[: holder + 1] + new + rest
    last = members[-1]
    comma = _after_space(text, last.end)
    is_trailing = text.startswith(",", comma)
    after = comma + 1 if is_trailing else last.end
    at = _end_of_line(text, after)
    indent = _indent_at(text, last.start)
    if "\n" in text[holder : last.start]:
        new = newline + indent + _member(key, value, unit, indent, newline)
    else:
        begin = newline + outer + unit if at > after else " "
        new = f"{begin}{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
    if is_trailing:
        return text[:at] + new + "," + text[at:]
    return text[: last.end] + "," + text[last.end : at] + new + text[at:]


def _end_of_line(text: str, at: int) -> int:
    """Return the place after the comments at the end of a line."""
    match = REST_OF_LINE.match(text, at)
    return match.end() if match and match[0].strip() else at


def _member(key: str, value: Any, unit: str, indent: str, newline: str) -> str:
    return f"{json.dumps(key)}: {_dumps(value, unit, indent, newline)}"


def _dumps(value: Any, unit: str, indent: str, newline: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return (newline + indent).join(lines)


def _unit(text: str) -> str:
    """Return the indentation of a level: that of the first line that has one."""
    match = INDENT.search(text)
    return match[1][:8] if match else "  "


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]
