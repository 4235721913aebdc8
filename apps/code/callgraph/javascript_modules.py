"""Imports and exports of JavaScript and TypeScript."""

from typing import Any

from apps.code.callgraph.javascript_chains import values_of
from apps.code.callgraph.scopes import Scopes, field, text
from apps.code.values import words

FUNCTIONS = words("arrow_function function_expression generator_function class")


def required(node: Any) -> str:
    """The module of `require('module')`, else ""."""
    if node.type != "call_expression" or field(node, "function").text != b"require":
        return ""
    arguments = field(node, "arguments")
    strings = arguments.named_children if arguments is not None else []
    return quoted(strings[0]) if len(strings) == 1 and strings[0].type == "string" else ""


def quoted(node: Any) -> str:
    return text(node).strip("\"'`")


def require(scopes: Scopes, pattern: Any, module: str) -> None:
    if pattern.type == "identifier":
        scopes.add_import(pattern, text(pattern), module)
    for child in pattern.named_children if pattern.type == "object_pattern" else ():
        if child.type == "shorthand_property_identifier_pattern":
            scopes.add_import(child, text(child), module, text(child))
        elif child.type == "pair_pattern" and field(child, "value").type == "identifier":
            scopes.add_import(child, text(field(child, "value")), module, text(field(child, "key")))


def visit_import(scopes: Scopes, node: Any) -> None:
    source = field(node, "source")
    clauses = [child for child in node.named_children if child.type == "import_clause"]
    for child in node.named_children:
        if child.type == "import_require_clause":
            scopes.add_import(child, text(child.named_children[0]), quoted(field(child, "source")))
    if source is None:
        return
    module = quoted(source)
    if not clauses:
        scopes.add_import(node, "", module)
    for part in clauses[0].named_children if clauses else ():
        if part.type == "identifier":
            scopes.add_import(part, text(part), module, "default")
        elif part.type == "namespace_import":
            scopes.add_import(part, text(part.named_children[0]), module, "*")
        for one in _children(part, "import_specifier"):
            name = text(field(one, "name") or one.children[0])
            alias = field(one, "alias")
            scopes.add_import(one, text(alias) if alias is not None else name, module, name)


def visit_export(scopes: Scopes, node: Any) -> None:
    source, value = field(node, "source"), field(node, "value")
    module = quoted(source) if source is not None else ""
    has_names = False
    for child in node.named_children:
        if child.type == "namespace_export":
            has_names = True
            scopes.add_import(child, text(child.named_children[0]), module, "*", exported=True)
        for one in _children(child, "export_specifier"):
            has_names = True
            name, alias = field(one, "name") or one.children[0], field(one, "alias")
            exported = text(alias) if alias is not None else text(name)
            scopes.add_import(one, exported, module, text(name), exported=True)
    if module and not has_names:
        scopes.add_import(node, "*", module, "*", exported=True)
    declared = field(node, "declaration")
    name = value if value is not None and value.type == "identifier" else None
    if declared is not None and is_default(declared):
        name = field(declared, "name")
    if scopes.notes.get("page") and (value is not None or name is not None):
        return  # the page is its default export
    if name is not None:
        scopes.add_import(name, "default", "", text(name), exported=True)
    elif value is not None and value.type not in FUNCTIONS:
        for chain in values_of(value):
            scopes.bind(node, chain, name="default")


def is_default(node: Any) -> bool:
    parent = node.parent
    return bool(
        parent is not None
        and parent.type == "export_statement"
        and any(child.type == "default" for child in parent.children)
    )


def _children(node: Any, kind: str) -> list[Any]:
    """The children of a type. Others may be comments."""
    return [child for child in node.named_children if child.type == kind]
