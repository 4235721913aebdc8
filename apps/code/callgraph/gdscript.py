"""The rules of GDScript: a file is a class, which all files see if it has a name."""

from typing import Any

from apps.code.callgraph.facts import CALL, ELEMENT, MAX_CHAIN, SELF, SUPER, UNKNOWN, Chain
from apps.code.callgraph.rules import Names, Rules
from apps.code.callgraph.scopes import Scopes, field, text
from apps.code.callgraph.values import EXTERNAL_VALUES, Values
from apps.code.values import words

NODES = words(
    "source class_definition function_definition lambda variable_statement call attribute"
)
NAME = "class_name_statement"
ROOTS = {"self": SELF, "super": SUPER}
MAX_PARTS = MAX_CHAIN // 2


def chain(node: Any) -> Chain:
    """The chain of an expression: `Box.new().size()` has a class, what it makes, and a method."""
    if node is None or node.type not in ("identifier", "call", "attribute"):
        return (UNKNOWN,)
    if node.type == "identifier":
        return (ROOTS.get(text(node), text(node)),)
    first, *parts = node.named_children
    known = chain(first)
    if node.type == "call":
        return (*known, CALL)
    for each in parts[:MAX_PARTS]:
        known = _applied(known, each)
    return known


def _applied(known: Chain, part: Any) -> Chain:
    name = text(part.named_children[0] if part.named_children else part)
    if part.type == "attribute_call":
        return (*known, CALL) if name == "new" else (*known, name, CALL)
    return (*known, name, ELEMENT) if part.type == "attribute_subscript" else (*known, name)


def _calls_of(scopes: Scopes, node: Any) -> None:
    """The calls in `ship.crew().work()`, each of what is on its left."""
    first, *parts = node.named_children
    known = chain(first)
    for each in parts[:MAX_PARTS]:
        known = _applied(known, each)
        if each.type == "attribute_call":
            scopes.call(each.named_children[0], known[:-1])


def _visit(scopes: Scopes, node: Any) -> None:
    match node.type:
        case "source":
            named = [each for each in node.named_children if each.type == NAME]
            scopes.define(node, field(named[0], "name") if named else None, "class")
        case "class_definition":
            scopes.define(node, field(node, "name"), "class")
        case "function_definition" | "lambda":
            name = field(node, "name")
            scopes.define(node, name, "function" if name is not None else "")
            for each in field(node, "parameters").named_children:
                scopes.bind(each.named_children[0] if each.named_children else each, ())
        case "variable_statement":
            scopes.bind(field(node, "name"), chain(field(node, "value")))
        case "call":
            scopes.call(node.named_children[0], chain(node)[:-1])
        case "attribute":
            _calls_of(scopes, node)


class GDScriptRules(Rules):
    family = frozenset({"gdscript"})
    sees_members = True
    visits = dict.fromkeys(NODES, _visit)
    common = words("new size append has keys emit connect queue_free add_child get_node")

    def global_name(self, names: Names, path: str, name: str) -> Values:
        files = [file for file in names.project.defining(name) if file.endswith(".gd")]
        return names.union(names.module_names(file, name) for file in files) or EXTERNAL_VALUES
