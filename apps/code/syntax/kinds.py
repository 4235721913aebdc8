"""The kind of a definition: from a capture of the query, else from the type of its node.

Most grammars name node types alike (`class_declaration`, `class_specifier`), so the words in a type
give the kind if the query does not.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from tree_sitter import Node

from apps.code.values import words

# Captures of positions. Every other capture is named after a kind.
ROLES = frozenset({"def", "name", "label", "scope", "declarator", "keyword", "kind"})
UNKNOWN = "definition"

# Kinds by words of node types. The first match counts: `interface_type` is an interface.
WORDS = {
    "constructor": "constructor",
    "init": "constructor",
    "interface": "interface",
    "struct": "struct",
    "enum": "enum",
    "union": "union",
    "trait": "trait",
    "record": "record",
    "annotation": "annotation",
    "protocol": "protocol",
    "mixin": "mixin",
    "concept": "concept",
    "delegate": "delegate",
    "property": "property",
    "method": "method",
    "rpc": "method",
    "macro": "macro",
    "type": "type",
    "newtype": "type",
    "alias": "type",
    "function": "function",
    "subroutine": "function",
    "fun": "function",
    "class": "class",
    "actor": "class",
    "extension": "extension",
    "impl": "implementation",
    "instance": "implementation",
    "companion": "object",
    "object": "object",
    "namespace": "namespace",
    "internal": "namespace",
    "package": "package",
    "module": "module",
    "mod": "module",
    "section": "heading",
    "message": "message",
    "service": "service",
    "operation": "operation",
    "fragment": "fragment",
    "block": "block",
    "bind": "value",
    "value": "value",
    "given": "value",
    "keyframes": "animation",
}

# Kinds that have methods: a function directly inside one of them is a method.
TYPES = words(
    "class struct interface enum union trait record protocol mixin object extension implementation "
    "type"
)


@cache
def kind_of_type(node_type: str) -> str:
    """The kind of a node type: `class` for `class_specifier`; UNKNOWN if no word matches."""
    words = node_type.lower().split("_")
    return next((kind for word, kind in WORDS.items() if word in words), UNKNOWN)


def kind_of(captures: Mapping[str, Sequence[Node]]) -> tuple[str, Node | None]:
    """The kind of one match of a query, and the node of the whole declaration if it is known."""
    for capture, nodes in captures.items():
        if capture not in ROLES:
            return capture, nodes[0]
    whole = captures["def"][0] if "def" in captures else None
    node = captures["kind"][0] if "kind" in captures else whole
    return (kind_of_type(node.type) if node is not None else UNKNOWN), whole


def kind_in(kind: str, name: str, parent_kind: str) -> str:
    """The kind of a declaration inside a definition of `parent_kind` ("" at the top level)."""
    if kind in ("function", "prototype") and parent_kind in TYPES:
        return "method"
    if kind == "variable" and name.isupper():
        return "constant"
    return kind
