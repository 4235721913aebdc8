"""Edits of JSON with comments: one member of an object changes, all other bytes stay as they are.

Comments and trailing commas are read, as VS Code, Zed and opencode write them.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 100
SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
SCALAR = re.compile(r"-?(?:0|[1-9]\d{0,999})(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
REST_OF_LINE = re.compile(r"[ \t]*(?:/\*[^\n]*?\*/[ \t]*)*(?://[^\n]*)?(?=\r?\n)")
REST_IS_BLANK = re.compile(r"[ \t]*\r?\n")
INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


class Damaged(Exception):
    """The text is not JSON; the message says where."""


@dataclass
class Member:
    """A member of an object: where its key begins, its value begins, and its value ends."""

    key: str
    start: int
    value_start: int
    end: int


@dataclass
class Object:
    """An object on the path: its braces, and its members in order."""

    start: int
    end: int = 0
    members: list[Member] = field(default_factory=list)
    comma: int = -1  # where a trailing comma is, or -1

    def last(self, key: str) -> Member | None:
        """The member that counts: if a key is there twice, the last one."""
        return next((one for one in reversed(self.members) if one.key == key), None)


class _Parser:
    """Reads a text. `objects`: those found at the path, from the root on."""

    def __init__(self, text: str, path: Sequence[str]) -> None:
        self.text = text
        self.path = path
        self.objects: dict[int, Object] = {}

    def document(self) -> Any:
        start = self._skip(0)
        value, end = self._value(start, 0, on_path=True)
        if self._skip(end) != len(self.text):
            raise self._damaged(end, "there is more after the end")
        return value

    def _skip(self, at: int) -> int:
        end = _after_space(self.text, at)
        if self.text.startswith("/*", end):
            raise self._damaged(end, "a comment does not end")
        return end

    def _damaged(self, at: int, problem: str) -> Damaged:
        line = self.text.count("\n", 0, at) + 1
        return Damaged(f"line {line}: {problem}")

    def _value(self, at: int, depth: int, *, on_path: bool) -> tuple[Any, int]:
        if depth > MAX_DEPTH:
            raise self._damaged(at, "it is nested too deep")
        character = self.text[at : at + 1]
        if character == "{":
            return self._object(at, depth, on_path=on_path)
        if character == "[":
            return self._array(at, depth)
        if character == '"':
            return self._string(at)
        match = SCALAR.match(self.text, at)
        if match is None:
            raise self._damaged(at, "a value is missing" if at >= len(self.text) else "no value")
        return json.loads(match[0]), match.end()

    def _string(self, at: int) -> tuple[str, int]:
        match = STRING.match(self.text, at)
        if match is None:
            raise self._damaged(at, "a string is expected, or does not end")
        try:
            return str(json.loads(match[0])), match.end()
        except ValueError:
            raise self._damaged(at, "a string has an unknown escape") from None

    def _array(self, at: int, depth: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        at = self._skip(at + 1)
        while not self.text.startswith("]", at):
            value, at = self._value(at, depth + 1, on_path=False)
            values.append(value)
            at = self._separator(at, "]")
        return values, at + 1

    def _separator(self, at: int, closing: str) -> int:
        at = self._skip(at)
        if self.text.startswith(",", at):
            return self._skip(at + 1)
        if not self.text.startswith(closing, at):
            raise self._damaged(at, f"a comma or {closing} is expected")
        return at

    def _object(self, at: int, depth: int, *, on_path: bool) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        layout = Object(at)
        if on_path:
            self.objects[depth] = layout
            for deeper in [level for level in self.objects if level > depth]:
                del self.objects[deeper]
        at = self._skip(at + 1)
        while not self.text.startswith("}", at):
            start = at
            key, at = self._string(at)
            at = self._skip(at)
            if not self.text.startswith(":", at):
                raise self._damaged(at, "a colon is expected")
            begin = self._skip(at + 1)
            leads = on_path and depth < len(self.path) and key == self.path[depth]
            if leads:
                # A key that is there twice: the last one counts.
                for level in [level for level in self.objects if level > depth]:
                    del self.objects[level]
            values[key], at = self._value(begin, depth + 1, on_path=leads)
            layout.members.append(Member(key, start, begin, at))
            after = self._skip(at)
            layout.comma = after if self.text.startswith(",", after) else -1
            at = self._separator(at, "}")
        layout.end = at + 1
        return values, at + 1


def loads(text: str) -> Any:
    """Return the value of a text; {} if there is nothing but blanks and comments.

    Raises Damaged.
    """
    return _parse(text, ())[0]


def _parse(text: str, path: Sequence[str]) -> tuple[Any, dict[int, Object]]:
    parser = _Parser(text, path)
    if _is_blank(text):
        return {}, {}
    value = parser.document()
    if not isinstance(value, dict):
        raise Damaged("line 1: an object is expected")
    return value, parser.objects


def _is_blank(text: str) -> bool:
    return _after_space(text, 0) == len(text)


def _after_space(text: str, at: int) -> int:
    """Return the place after blanks and comments."""
    match = SPACE.match(text, at)
    return match.end() if match else at


def with_member(text: str, key: str, name: str, value: Any) -> str:
    """Return the text with `value` as member `name` of the object `key` of the root.

    Raises Damaged.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    document, objects = _parse(text, (key, name))
    if not objects:
        head = text if not text or text.endswith("\n") else text + newline
        return head + _dumps({key: {name: value}}, "  ", "", newline) + newline
    root = objects[0]
    if key not in document:
        return _inserted(text, root, key, {name: value}, newline)
    if not isinstance(document[key], dict):
        raise Damaged(f"{key} is not an object")
    servers = objects[1]
    member = servers.last(name)
    if member is None:
        return _inserted(text, servers, name, value, newline)
    indent = _indent_at(text, member.start)
    new = _dumps(value, _unit(text), indent, newline)
    return text[: member.value_start] + new + text[member.end :]


def without_member(text: str, key: str, name: str) -> str:
    """Return the text without the member `name` of the object `key`. Raises Damaged."""
    while True:
        document, objects = _parse(text, (key, name))
        if not isinstance(document.get(key), dict) or name not in document[key]:
            return text
        servers = objects[1]
        member = servers.last(name)
        assert member is not None, "the document has it"
        text = _cut(text, servers, member)


def _cut(text: str, holder: Object, member: Member) -> str:
    at = holder.members.index(member)
    start, end = member.start, member.end
    comma = _after_space(text, end)
    if text.startswith(",", comma):
        # Comments before the comma are the member's.
        end = comma + 1
    elif at:
        # The comma before the last member goes, comments after it stay.
        before = holder.members[at - 1].end
        gap = text[before:start]
        place = _after_space(gap, 0)
        text = text[:before] + gap[:place] + gap[place + 1 :] + text[start:]
        start, end = start - 1, end - 1
    line = text.rfind("\n", 0, start) + 1
    rest = REST_IS_BLANK.match(text, end)
    if text[line:start].strip() == "" and rest and line > holder.start:
        return text[:line] + text[rest.end() :]
    return text[:start] + text[end:]


def _inserted(text: str, holder: Object, key: str, value: Any, newline: str) -> str:
    """Insert a member at the end of an object."""
    unit = _unit(text)
    outer = _indent_at(text, holder.start)
    if not holder.members:
        indent = outer + unit
        new = newline + indent + _member(key, value, unit, indent, newline)
        rest = text[holder.start + 1 :]
        closes = rest.lstrip(" \t")
        if closes.startswith("}"):
            rest = newline + outer + closes
        return text[: holder.start + 1] + new + rest
    last = holder.members[-1]
    after = holder.comma + 1 if holder.comma >= 0 else last.end
    at = _end_of_line(text, after)
    indent = _indent_at(text, last.start)
    if "\n" in text[holder.start : last.start]:
        new = newline + indent + _member(key, value, unit, indent, newline)
    else:
        begin = newline + outer + unit if at > after else " "
        new = f"{begin}{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
    if holder.comma >= 0:
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
