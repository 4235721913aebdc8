"""The code in a page of Vue, Svelte or Astro: its scripts and the expressions of its template.

The code is copied to a text as long as the page that is blank elsewhere, so that bytes, rows and
columns are those of the page. Semicolons between the parts keep two expressions from becoming one
call.
"""

import re
from collections.abc import Callable, Mapping

from tree_sitter import Node

NOT_A_BREAK = re.compile(rb"[^\n]")
NAME = re.compile(rb"[\w$.-]*")
# `item in items` and `item of items` of Vue
FOR = re.compile(rb"\s(?:in|of)\s")
# An expression in an attribute of Svelte: `class="a {b}"`
BRACED = re.compile(rb"\{([^{}]+)\}")
SEPARATOR = ord(";")
SPACE = ord(" ")
# Before the key in `{#each items as item (key)}` of Svelte
BEFORE_KEY = re.compile(rb"\s(?=\()")
# A component that is chosen by an expression, if that is its name.
COMPONENT = re.compile(rb"[A-Z][\w$.]*")
IS = (b":is=", b"v-bind:is=")
# Directives of Svelte that call a function.
ACTIONS = (b"use", b"transition", b"in", b"out", b"animate")
# Values of `type` of a script with code.
CODE_TYPES = (b"module", b"javascript", b"babel", b"typescript")

Range = tuple[int, int]  # first byte, and the one after the last


class Page:
    """The code of a page."""

    def __init__(self, source: bytes, *, has_jsx: bool) -> None:
        self.source = source
        self.has_jsx = has_jsx
        self.text = bytearray(NOT_A_BREAK.sub(b" ", source))
        self.scripts: list[Range] = []
        self.tags: list[Node] = []  # names of components that it uses, and of snippets

    def script(self, start: int, end: int) -> None:
        self.scripts.append((start, end))
        self._copy(start, end)
        # A last statement without a semicolon must not end with that of the next part.
        if not self.source[start:end].rpartition(b"\n")[2].strip():
            self.text[end : end + 2] = b"0;"

    def expression(self, start: int, end: int) -> None:
        """Copy an expression. An object gets parentheses, if there is room before it."""
        text = self.source[start:end]
        start += len(text) - len(text.lstrip())
        if self.source[start:end].startswith(b"..."):
            start += 3
        self._copy(start, end)
        is_object = self.source[start : start + 1] == b"{"
        if is_object and start > 1 and self.text[start - 2] in (SPACE, SEPARATOR):
            self.text[start - 2 : start] = b";("
            self.text[end : end + 1] = b")" if end < len(self.text) else b""

    def _copy(self, start: int, end: int) -> None:
        self.text[start:end] = self.source[start:end]
        for at in (start - 1, end):
            if 0 <= at < len(self.text) and self.text[at] == SPACE:
                self.text[at] = SEPARATOR


def page_of(source: bytes, root: Node, grammar: str) -> Page:
    """What is code in a page. `root` is the root of its syntax tree."""
    visits = PAGES[grammar]
    page = Page(source, has_jsx=grammar == "astro")
    stack = [root]
    while stack:
        node = stack.pop()
        visit = visits.get(node.type)
        if visit is None or visit(page, node):
            stack.extend(reversed(node.children))
    return page


# Collects a node. Returns True if its children are to be visited, too.
Visit = Callable[[Page, Node], bool | None]


def _script(page: Page, node: Node) -> None:
    given = _attributes(node)
    kind = given.get(b"type", b"module")
    if any(word in kind for word in CODE_TYPES):
        page.has_jsx |= given.get(b"lang", b"") in (b"tsx", b"jsx")
        for child in node.named_children:
            if child.type == "raw_text":
                page.script(child.start_byte, child.end_byte)


def _attributes(element: Node) -> dict[bytes, bytes]:
    """The attributes of an element."""
    tag = element.named_children[0] if element.named_children else None
    found: dict[bytes, bytes] = {}
    for attribute in tag.named_children if tag is not None else ():
        if attribute.type == "attribute":
            name, _, value = (attribute.text or b"").partition(b"=")
            found[name.strip()] = value.strip(b" \"'")
    return found


def _template(page: Page, node: Node) -> bool:
    return _attributes(node).get(b"lang", b"html") == b"html"


def _frontmatter(page: Page, node: Node) -> None:
    page.script(node.start_byte, node.end_byte)


def _whole(page: Page, node: Node) -> None:
    start = node.start_byte
    if page.source[start - 1 : start] == b"@":  # `{@attach expression}`
        start += len((node.text or b"").partition(b" ")[0])
    page.expression(start, node.end_byte)


def _svelte_text(page: Page, node: Node) -> None:
    """`{expression}`, which may be the component in `<svelte:component this={Panel}>`."""
    attribute = node.parent and node.parent.parent and node.parent.parent.parent
    is_this = (
        attribute is not None
        and attribute.type == "attribute"  # the text of another node may be all of the page
        and (attribute.text or b"").startswith(b"this=")
    )
    if is_this and COMPONENT.fullmatch(node.text or b""):
        page.tags.append(node)
    else:
        _whole(page, node)


def _interpolation(page: Page, node: Node) -> None:
    """`{{ expression }}`"""
    for child in node.named_children:
        page.expression(child.start_byte, child.end_byte)


def _braced(page: Page, node: Node) -> None:
    """`{expression}`"""
    page.expression(node.start_byte + 1, node.end_byte - 1)


def _directive(page: Page, node: Node) -> None:
    """An attribute of Vue whose value is an expression. That of a slot is a pattern."""
    text = node.text or b""
    if text.startswith((b"v-slot", b"#")):
        return
    stack = list(node.named_children)
    while stack:
        part = stack.pop()
        stack += part.named_children
        if part.type == "dynamic_directive_inner_value":
            page.expression(part.start_byte, part.end_byte)
        elif part.type == "attribute_value":
            value = part.text or b""
            if text.startswith(IS) and COMPONENT.fullmatch(value):
                page.tags.append(part)
                continue
            match = FOR.search(value) if text.startswith(b"v-for") else None
            page.expression(part.start_byte + (match.end() if match else 0), part.end_byte)


def _each(page: Page, node: Node) -> None:
    """`{#each items as item (key)}`: what follows `as` is a pattern, and then a key."""
    is_pattern = False
    for child in node.children:
        is_pattern |= child.type == "as"
        before = BEFORE_KEY.search(child.text or b"") if is_pattern else None
        if before is not None:
            page.expression(child.start_byte + before.end(), child.end_byte)
        elif not is_pattern and child.type.startswith("raw_text"):
            page.expression(child.start_byte, child.end_byte)


def _render(page: Page, node: Node) -> None:
    """`{@render snippet(x)}`"""
    for child in node.named_children:
        if child.type == "snippet_name":
            page.expression(child.start_byte, node.end_byte - 1)


def _snippet(page: Page, node: Node) -> None:
    """`{#snippet row(item)}` defines a function; its parameters are patterns."""
    page.tags += [child for child in node.named_children if child.type == "snippet_name"]


def _action(page: Page, node: Node) -> bool:
    """`use:tooltip={text}` calls `tooltip(text)`."""
    prefix, colon, rest = (node.text or b"").partition(b":")
    name, attribute = NAME.match(rest), node.parent
    if colon and prefix in ACTIONS and name and name[0] and attribute is not None:
        start = node.start_byte + len(prefix) + 1
        end = start + len(name[0])
        page.expression(start, end)
        if attribute.end_byte > node.end_byte:
            page.text[end : node.end_byte + 2] = b" " * (node.end_byte - end) + b"(+"
            page.text[attribute.end_byte - 1] = ord(")")
        else:
            page.text[end : end + 2] = b"()"
    return (node.text or b"").startswith(b"{")  # `{@attach expression}`


def _quoted(page: Page, node: Node) -> None:
    for match in BRACED.finditer(node.text or b""):
        page.expression(node.start_byte + match.start(1), node.start_byte + match.end(1))


def _skipped(page: Page, node: Node) -> None:
    """What has no code."""


def _tag(page: Page, node: Node) -> bool:
    """A tag: a component has a capital, a dot or, in Vue, a hyphen in its name."""
    name = node.named_children[0] if node.named_children else None
    if name is not None and name.type == "tag_name":
        text = tag_of(page.source, name)
        if text[:1].isupper() or b"." in text or b"-" in text:
            page.tags.append(name)
    return True


def tag_of(source: bytes, name: Node) -> bytes:
    """The whole name of a tag. The grammar of Vue ends it at the first dot."""
    match = NAME.match(source, name.start_byte)
    return match[0] if match else b""


_COMMON: Mapping[str, Visit] = {
    "script_element": _script,
    "style_element": _skipped,
    **dict.fromkeys(("start_tag", "self_closing_tag"), _tag),
}
PAGES: Mapping[str, Mapping[str, Visit]] = {
    "vue": {
        **_COMMON,
        "template_element": _template,
        "interpolation": _interpolation,
        "directive_attribute": _directive,
    },
    "svelte": {
        **_COMMON,
        "each_start_expr": _each,
        "then_expr": _skipped,
        "catch_expr": _skipped,
        "snippet_start_expr": _snippet,
        "render_expr": _render,
        "raw_text_expr": _svelte_text,
        "raw_text_await": _whole,
        "attribute_name": _action,
        "attribute_value": _quoted,
    },
    "astro": {
        **_COMMON,
        "frontmatter_js_block": _frontmatter,
        "html_interpolation": _braced,
        "attribute_js_expr": _whole,
    },
}
