"""Fields and types of JavaScript and TypeScript."""

from typing import Any

from apps.code.callgraph.facts import (
    ARGUMENT,
    INSTANCE,
    MODULE,
    PROTOTYPE,
    TYPE,
    TYPE_PARAMETER,
    UNKNOWN_CHAIN,
)
from apps.code.callgraph.javascript_chains import annotation, declared
from apps.code.callgraph.javascript_modules import FUNCTIONS
from apps.code.callgraph.scopes import Scopes, field, text, type_of


def visit_field(scopes: Scopes, node: Any) -> None:
    name = field(node, "name") or field(node, "property")
    value, type_ = field(node, "value"), field(node, "type")
    if name is None:
        return
    if value is not None and value.type in FUNCTIONS:
        scopes.notes["name", value.id] = name
        return
    if type_ is not None and (function := _function_type(type_)) is not None:
        returns = tuple(annotation(field(function, "return_type")))
        scopes.define(node, name, "function", opens=False, returns=returns, flags=(PROTOTYPE,))
        return
    scopes.bind_each(name, declared(type_, value))


def _function_type(type_: Any) -> Any:
    inner = type_.named_children[0] if type_.named_children else None
    return inner if inner is not None and inner.type == "function_type" else None


def visit_alias(scopes: Scopes, node: Any) -> None:
    value = field(node, "value")
    if value.type == "object_type":
        scopes.define(node, field(node, "name"), "class", flags=(TYPE,))
        return
    if value.type == "intersection_type":
        bases = tuple(type_[:-1] for type_ in annotation(value) if type_[-1] == INSTANCE)
        scopes.define(node, field(node, "name"), "class", bases=bases, flags=(TYPE,))
        return
    for type_ in annotation(value):
        scopes.bind(field(node, "name"), type_of(type_))


def visit_type_parameter(scopes: Scopes, node: Any) -> None:
    constraint = field(node, "constraint")
    values = annotation(constraint.named_children[0]) if constraint is not None else []
    name, is_inside = field(node, "name"), scopes.enclosing_class() == scopes.scope != MODULE
    shown = TYPE_PARAMETER.format(text(name)) if is_inside else text(name)
    for value in values or [UNKNOWN_CHAIN]:
        scopes.bind(name, type_of(value), name=shown)


def visit_type(scopes: Scopes, node: Any) -> None:
    name = field(node, "name")
    if name is not None:
        scopes.define(node, name, "class", name=text(name).strip("\"'"))


def takes_function(scopes: Scopes, position: int, type_: Any) -> None:
    """Note the parameters of a function that a parameter takes."""
    stack = list(type_.named_children)
    while stack:
        part = stack.pop()
        if part.type in ("union_type", "parenthesized_type"):
            stack += part.named_children
        elif part.type == "function_type":
            inner = field(part, "parameters").named_children
            named = [one for one in inner if not one.text.startswith(b"this")]
            for at, one in enumerate(named):
                if (given := field(one, "type")) is not None:
                    for value in annotation(given):
                        scopes.bind(one, value, name=f"{ARGUMENT}{position}.{at}")
