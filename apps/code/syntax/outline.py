"""The definitions of a file and the names that it declares, from its syntax tree."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from sys import maxsize
from typing import NamedTuple, cast
from unicodedata import normalize

from tree_sitter import Node, Query, QueryCursor

from apps.code.syntax import kinds
from apps.code.syntax.code import Code, language
from apps.code.syntax.declarators import macro_name
from apps.code.syntax.documents import CLOSING, Heading, sections
from apps.code.syntax.pieces import Definition, Outline
from apps.code.syntax.queries import BODIES, query_text

MAX_NAME = 120
MAX_SIGNATURE = 300
# `A::b`, `M:f` and `exports.f` declare their last part.
QUALIFIER = re.compile(r"::|[.:]")
QUALIFIED = re.compile(r"\A[\w$#~]+(?:(?:::|[.:])[\w$#~]+)+\Z")
TYPES = re.compile(r"<[^<>]*>")
# Nodes above the headings of a document of Markdown.
SECTIONS = frozenset({"document", "section"})
HEADINGS = frozenset({"atx_heading", "setext_heading"})
# Nodes of names with arguments, in C++ and Julia.
WITH_ARGUMENTS = frozenset({"template_type", "template_function", "parametrized_type_expression"})
LEVEL = re.compile(r"(?:atx|setext)_h(\d)")
# Characters before the name in a node: Ruby's `:price` names the method.
SIGILS = {"simple_symbol": 1}
COMMENT_LINE = re.compile(r"\n[ \t]*(?:#|//)[^\n]*")


Key = tuple[int, int]  # first byte, negated end byte


def key_of(node: Node) -> Key:
    """A sort key: by position, outer before inner."""
    return node.start_byte, -node.end_byte


class Scope(NamedTuple):
    """A captured definition."""

    node: Node  # the whole definition
    label: str  # its part of a symbol path
    kind: str


class Name(NamedTuple):
    """A captured name."""

    row: int  # 0-based, of its first byte
    end: int  # the byte after its last
    text: str
    kind: str
    whole: Node | None  # the whole declaration; None: unknown
    scope: Key | None  # key of the scope that has this name; None: it has no scope
    pattern: int  # index of the pattern in the query

    @property
    def rank(self) -> tuple[bool, int]:
        """Sort key of several patterns that match one name: definitions first, then the order of
        the query."""
        return self.scope is None, self.pattern


@dataclass(frozen=True, slots=True)
class Captures:
    """The matches of the query of a grammar."""

    scopes: dict[Key, Scope] = field(default_factory=dict)  # sorted
    names: dict[int, Name] = field(default_factory=dict)  # by their first byte, sorted


@cache
def _query(grammar: str) -> Query | None:
    text = query_text(grammar)
    return Query(language(grammar), text) if text else None


def captures_of(code: Code) -> Captures:
    """The scopes and names of a parsed file; none if the grammar has no query. Those of a page are
    in its scripts.

    Takes time linear in the size of the tree, whatever its depth.
    """
    query, source = _query(code.grammar), code.source
    if query is None:
        return Captures()
    scopes: dict[Key, Scope] = {}
    names: dict[int, Name] = {}
    for pattern, captures in QueryCursor(query).matches(code.root):
        kind, whole = kinds.kind_of(captures)
        key = None
        if code.page and not is_script(code, next(iter(captures.values()))[0]):
            continue
        if "def" in captures:
            scope = Scope(captures["def"][0], _label(captures, source), kind)
            if code.wrapper and scope.label in ("", code.wrapper):
                continue
            key = key_of(scope.node)
            scopes.setdefault(key, scope)
        for node in _named(captures):
            text = _last_part(_text(node, source))
            name = Name(node.start_point.row, node.end_byte, text, kind, whole, key, pattern)
            other = names.get(node.start_byte)
            if other is None or name.rank < other.rank:
                names[node.start_byte] = name
    for node in code.tags:
        if node.type == "snippet_name" and node.parent is not None:
            text, row = (node.text or b"").decode("utf-8", "replace"), node.start_point.row
            whole = node.parent.parent
            names[node.start_byte] = Name(row, node.end_byte, text, "function", whole, None, -1)
    return Captures(dict(sorted(scopes.items())), dict(sorted(names.items())))


def is_script(code: Code, node: Node) -> bool:
    """Whether a node begins in a script of a page."""
    at = bisect_right(code.scripts, (node.start_byte, maxsize)) - 1
    return at >= 0 and node.start_byte < code.scripts[at][1]


def outline(code: Code, captures: Captures) -> Outline:
    """The definitions and names of a parsed file. `declared.declarations` adds the declarations,
    but those of headings."""
    if code.grammar == "markdown":
        return sections(_headings(code.root), last_row(code.root) + 1)
    names = [(name.row, name.text) for name in captures.names.values() if name.text]
    definitions = list(_nested(captures, code.source))
    return Outline(definitions, names)


def _headings(root: Node) -> Iterator[Heading]:
    """The headings of Markdown that are not in lists or quotes, in their order."""
    nodes = [root]
    while nodes:
        node = nodes.pop()
        if node.type in SECTIONS:
            nodes += reversed(node.named_children)
        title = node.child_by_field_name("heading_content")
        if node.type in HEADINGS and title is not None:
            text = CLOSING.sub("", " ".join((title.text or b"").decode("utf-8", "replace").split()))
            level = next(found[1] for child in node.children if (found := LEVEL.match(child.type)))
            yield Heading(node.start_point.row, int(level), text)


def scopes_around(scopes: Sequence[Key], positions: Iterable[int]) -> Iterator[int]:
    """For each byte position the index of the innermost scope that contains it, or -1.

    `scopes` and `positions` are sorted.
    """
    stack: list[int] = []
    at = 0
    for position in positions:
        while at < len(scopes) and scopes[at][0] <= position:
            stack.append(at)
            at += 1
        while stack and -scopes[stack[-1]][1] <= position:
            stack.pop()
        yield stack[-1] if stack else -1


def _named(captures: dict[str, list[Node]]) -> list[Node]:
    declarators = [_innermost(node) for node in captures.get("declarator", ())]
    return [_without_arguments(node) for node in captures.get("name", []) + declarators]


def _without_arguments(node: Node) -> Node:
    """The name in that of a specialisation or of a type with parameters: `Box` in `Box<int>`."""
    return node.named_children[0] if node.type in WITH_ARGUMENTS and node.named_children else node


def _innermost(node: Node) -> Node:
    """The name inside a C declarator: `f` in `*(*f)(int)`."""
    while True:
        if (name := macro_name(node)) is not None:
            return cast(Node, name)
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type in ("reference_declarator", "parenthesized_declarator"):
            inner = node.named_children[-1] if node.named_children else None
        if inner is None:
            return node
        node = inner


def _label(captures: dict[str, list[Node]], source: bytes) -> str:
    whole = captures["def"][0]
    if whole.type == "namespace_declaration" and source.startswith(b"extension", whole.start_byte):
        return ""  # of C#: `extension(string text) {` (`macros`)
    nodes = captures.get("label") or _named(captures)
    label = _without_types(_text(nodes[0], source)) if nodes else ""
    if QUALIFIED.fullmatch(label):
        label = QUALIFIER.sub(".", label)
    if "scope" in captures:
        scope = _text(captures["scope"][0], source).lstrip("*(").partition("[")[0]
        label = f"{scope}.{label}"
    return label.partition("<")[0] if label[:1] != "<" else label


def _text(node: Node, source: bytes) -> str:
    text = source[node.start_byte : node.start_byte + 4 * MAX_NAME]
    text = text[: node.end_byte - node.start_byte]
    words = " ".join(normalize("NFC", text.decode("utf-8", "replace")).split())[:MAX_NAME]
    words = words[SIGILS.get(node.type, 0) :]
    return words[1:-1] if len(words) > 2 and words[0] == words[-1] in "\"'`" else words


def _without_types(name: str) -> str:
    """`Box::get` for `Box<T>::get`"""
    while ">::" in name and (plain := TYPES.sub("", name)) != name:
        name = plain
    return name


def _last_part(name: str) -> str:
    name = _without_types(name)
    return QUALIFIER.split(name)[-1] if QUALIFIED.fullmatch(name) else name


def _nested(captures: Captures, source: bytes) -> Iterator[Definition]:
    stack: list[tuple[int, int]] = []  # (end byte, index) of the enclosing definitions
    for index, ((start, negative_end), scope) in enumerate(captures.scopes.items()):
        while stack and stack[-1][0] <= start:
            stack.pop()
        parent = stack[-1][1] if stack else -1
        node = scope.node
        first, signature = node.start_point.row, _signature(node, source)
        yield Definition(scope.label, scope.kind, first, last_row(node), parent, signature)
        stack.append((-negative_end, index))


def last_row(node: Node) -> int:
    """The last row of a node. A line break at its end is not a row."""
    end = node.end_point
    return max(node.start_point.row, end.row - 1 if end.column == 0 else end.row)


def _signature(node: Node, source: bytes) -> str:
    """The text of a definition before its body, on one line; its first line if it has no body."""
    body = _body(node)
    end = body.start_byte if body is not None else node.end_byte
    head = source[node.start_byte : min(end, node.start_byte + 2 * MAX_SIGNATURE)]
    text = head.decode("utf-8", "replace")
    text = text.partition("\n")[0] if body is None else COMMENT_LINE.sub("", text)
    return " ".join(text.split())[:MAX_SIGNATURE].rstrip(" {:=")


def _body(node: Node) -> Node | None:
    """The body of a definition; searched at most as deep as in `const f = () => …`."""
    if node.type == "command":
        return None  # of Groovy: the name is in the block
    for _ in range(3):
        body = node.child_by_field_name("body")
        if body is not None:
            return body
        children = node.named_children[-1:] if node.named_child_count > 12 else node.named_children
        body = next((child for child in children if child.type in BODIES), None)
        if body is not None and body.child_by_field_name("body") is None:
            return body
        if not children:
            return None
        node = children[-1]
    return None
