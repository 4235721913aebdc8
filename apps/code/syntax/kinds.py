"""What a definition is, in one plain word: from a capture of its query, else from its node's type.

Node types are named alike in most grammars (`class_declaration`, `class_specifier`), so the words
in a type tell the kind wherever the query does not.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from tree_sitter import Node

# Captures that say where things stand; every other capture names a kind.
ROLES = frozenset({"def", "name", "label", "scope", "declarator", "keyword", "kind"})
UNKNOWN = "definition"

# Of several words in one type the first here counts: `interface_type` is an interface.
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

# What has methods: a function right inside one of these is a method.
TYPES = frozenset(
    """
    class struct interface enum union trait record protocol mixin object extension implementation
    type
    """.split()  # noqa: SIM905
)


@cache
def kind_of_type(node_type: str) -> str:
    """`class_specifier` is a class; UNKNOWN where no word of a type is known."""
    words = node_type.lower().split("_")
    return next((kind for word, kind in WORDS.items() if word in words), UNKNOWN)


def told(captures: Mapping[str, Sequence[Node]]) -> tuple[str, Node | None]:
    """The kind that one match of a query tells, and the node of the whole declaration."""
    for capture, nodes in captures.items():
        if capture not in ROLES:
            return capture, nodes[0]
    whole = captures["def"][0] if "def" in captures else None
    telling = captures["kind"][0] if "kind" in captures else whole
    return (kind_of_type(telling.type) if telling is not None else UNKNOWN), whole


def kind_in(kind: str, name: str, around: str) -> str:
    """The kind of what stands inside a definition of kind `around` ("" at the top of a file)."""
    if kind in ("function", "prototype") and around in TYPES:
        return "method"
    if kind == "variable" and name.isupper():
        return "constant"
    return kind
