"""Read the facts of Go from syntax trees."""

import re
from collections.abc import Sequence
from typing import Any

from apps.code.callgraph import steps
from apps.code.callgraph.facts import (
    CALL,
    CONTAINER,
    ELEMENT,
    INSTANCE,
    LITERAL_CHAIN,
    MAX_CHAIN,
    MODULE,
    PROTOTYPE,
    SELF,
    UNKNOWN_CHAIN,
    Chain,
)
from apps.code.callgraph.scopes import Scopes, children, extended, field, text, type_of
from apps.code.values import words

PREDECLARED = words(
    "append cap clear close complex copy delete imag len make max min new panic print println "
    "real recover bool byte complex64 complex128 error float32 float64 int int8 int16 int32 "
    "int64 rune string uint uint8 uint16 uint32 uint64 uintptr any comparable true false nil "
    "iota"
)
LITERALS = words(
    "interpreted_string_literal raw_string_literal int_literal float_literal rune_literal "
    "binary_expression func_literal true false"
)
VERSION = re.compile(r"v\d+\Z")


def chain(node: Any) -> Chain:
    """The chain of an expression."""
    return steps.follow(node, STEPS, LITERALS)


def _called(node: Any, parts: list[str]) -> Any:
    if made := _made(node):
        parts += reversed(made)
        return None
    parts.append(CALL)
    return field(node, "function")


def _typed(node: Any, parts: list[str]) -> Any:
    parts += reversed(annotation(field(node, "type")))


STEPS: steps.Steps = {
    **dict.fromkeys(("identifier", "type_identifier", "package_identifier"), steps.plain),
    "selector_expression": steps.member("field", "operand"),
    "qualified_type": steps.member("name", "package"),
    "call_expression": _called,
    "index_expression": steps.applied(ELEMENT, "operand"),
    **dict.fromkeys(
        ("slice_expression", "unary_expression", "parenthesized_expression"), steps.inner("operand")
    ),
    **dict.fromkeys(("composite_literal", "type_assertion_expression"), _typed),
    "type_conversion_expression": _typed,
}


def _made(node: Any) -> Chain:
    """The value of `new(T)`, `make(T)` and `append(list, …)`; empty for other calls."""
    function, arguments = field(node, "function"), field(node, "arguments")
    if function.type != "identifier" or not arguments.named_children:
        return ()
    name, first = text(function), arguments.named_children[0]
    if name in ("new", "make"):
        return annotation(first)
    return chain(first) if name == "append" else ()


def annotation(node: Any) -> Chain:
    """The chain of a value of a type."""
    suffix: list[str] = []
    while True:
        kind = node.type
        if kind in ("pointer_type", "parenthesized_type", "type_elem", "type_constraint"):
            node = node.named_children[0]
        elif kind == "generic_type":
            node = field(node, "type")
        elif kind in ("slice_type", "array_type", "implicit_length_array_type"):
            node = field(node, "element")
            suffix.append(CONTAINER)
        elif kind in ("map_type", "channel_type"):
            node = field(node, "value")
            suffix.append(CONTAINER)
        elif kind in ("type_identifier", "qualified_type", "identifier", "selector_expression"):
            base = chain(node)
            if base[0] in PREDECLARED and len(base) == 1:
                is_open = base[0] in ("any", "comparable")
                return UNKNOWN_CHAIN if is_open and not suffix else LITERAL_CHAIN
            return (*base, INSTANCE, *reversed(suffix))[: MAX_CHAIN + 1]
        else:
            return LITERAL_CHAIN


def _package(scopes: Scopes, node: Any) -> None:
    scopes.package = text(node.named_children[0])


def _import(scopes: Scopes, node: Any) -> None:
    path, alias = field(node, "path"), field(node, "name")
    module = text(path).strip('"`')
    if alias is None:
        parts = [part for part in module.split("/") if not VERSION.match(part)] or [module]
        name = parts[-1].partition(".v")[0].removeprefix("go-")
    else:
        name = {"dot": "*", "blank_identifier": ""}.get(alias.type, text(alias))
    scopes.add_import(node, name, module, "*" if name == "*" else "")


def _results(scopes: Scopes, node: Any, index: int) -> None:
    """Note the types of the results of a function."""
    result = field(node, "result")
    if result is None:
        return
    if result.type != "parameter_list":
        types = [annotation(result)]
    else:
        types = []
        for child in result.named_children:
            named = child.children_by_field_name("name")
            types += [annotation(field(child, "type"))] * max(1, len(named))
            for one in named if index == scopes.scope else ():
                scopes.bind(one, types[-1])
    if len(types) == 1:
        scopes.returns(types, index)
    for at, type_ in enumerate(types):
        scopes.bind(result, type_, name=f"#{at}", scope=index)


def _function(scopes: Scopes, node: Any) -> None:
    name = field(node, "name")
    index = scopes.define(node, name, "function" if name is not None else "")
    _signature(scopes, node, index)


def _method(scopes: Scopes, node: Any) -> None:
    receiver = field(node, "receiver").named_children[0]
    owner = annotation(field(receiver, "type"))[0]
    index = scopes.define(node, field(node, "name"), "function", owner=owner)
    name = field(receiver, "name")
    if name is not None:
        scopes.bind(name, (SELF,))
    _signature(scopes, node, index)


def _signature(scopes: Scopes, node: Any, index: int) -> None:
    for generic in children(node, "type_parameters"):
        for name in generic.children_by_field_name("name"):
            bound = annotation(field(generic, "type"))
            scopes.bind(name, bound[:-1] if bound[-1] == INSTANCE else UNKNOWN_CHAIN)
    for parameter in children(node, "parameters"):
        type_ = field(parameter, "type")
        value = annotation(type_) if type_ is not None else UNKNOWN_CHAIN
        if parameter.type == "variadic_parameter_declaration":
            value = (*value, CONTAINER)
        for name in parameter.children_by_field_name("name"):
            scopes.bind(name, value)
    _results(scopes, node, index)


def _type(scopes: Scopes, node: Any) -> None:
    type_ = field(node, "type")
    # The methods of the other type do not belong to the new one, but its fields do.
    is_named = type_.type in ("type_identifier", "qualified_type", "pointer_type", "generic_type")
    base = annotation(type_)[:-1] if is_named else ()
    index = scopes.define(node, field(node, "name"), "class", bases=(base,) if base else ())
    if type_.type in ("slice_type", "array_type", "map_type", "channel_type"):
        element = annotation(type_)
        scopes.bind(node, element[:-1], name=ELEMENT, scope=index)


def _alias(scopes: Scopes, node: Any) -> None:
    scopes.bind(field(node, "name"), type_of(annotation(field(node, "type"))))


def _field(scopes: Scopes, node: Any) -> None:
    index = scopes.enclosing_class()
    named, type_ = node.children_by_field_name("name"), annotation(field(node, "type"))
    for name in named if index != MODULE else ():
        scopes.bind(name, type_, scope=index)
    if not named and index != MODULE:
        _embed(scopes, index, node, type_)


def _embed(scopes: Scopes, index: int, node: Any, type_: Chain) -> None:
    if type_[-1] == INSTANCE:
        definition = scopes.definitions[index]
        scopes.definitions[index] = definition._replace(bases=(*definition.bases, type_[:-1]))
        scopes.bind(node, type_, name=type_[-2], scope=index)


def _interface_method(scopes: Scopes, node: Any) -> None:
    name = field(node, "name")
    index = scopes.define(node, name, "function", opens=False, flags=(PROTOTYPE,))
    _results(scopes, node, index)


def _interface_type(scopes: Scopes, node: Any) -> None:
    index = scopes.enclosing_class()
    if node.parent.type == "interface_type" and index != MODULE and len(node.named_children) == 1:
        _embed(scopes, index, node, annotation(node))


def _variables(scopes: Scopes, node: Any) -> None:
    named, type_ = node.children_by_field_name("name"), field(node, "type")
    if type_ is not None:
        for name in named:
            scopes.bind(name, annotation(type_))
    else:
        _assign(scopes, named, children(node, "value"))


def _short(scopes: Scopes, node: Any) -> None:
    left, right = field(node, "left"), field(node, "right")
    if node.type == "assignment_statement" and not any(
        child.type == "=" for child in node.children
    ):
        return
    _assign(scopes, left.named_children, right.named_children)


def _assign(scopes: Scopes, targets: Sequence[Any], values: Sequence[Any]) -> None:
    """Bind the names of an assignment, also to the results of one call."""
    for at, target in enumerate(targets):
        if target.type != "identifier":
            continue
        if len(values) == len(targets):
            value = values[at]
            if value.type != "nil":
                scopes.bind(target, chain(value))
        elif not values:
            scopes.bind(target, LITERAL_CHAIN)
        elif values[0].type == "call_expression":
            called = chain(field(values[0], "function"))
            scopes.bind(target, extended(called, f"#{at}"))
        else:
            scopes.bind(target, chain(values[0]) if at == 0 else LITERAL_CHAIN)


def _range(scopes: Scopes, node: Any) -> None:
    named, element = children(node, "left"), chain(field(node, "right"))
    for at, name in enumerate(named):
        is_value = at == 1 or len(named) == 1
        scopes.bind(name, extended(element, ELEMENT) if is_value else UNKNOWN_CHAIN)


def _case(scopes: Scopes, node: Any) -> None:
    alias, types = field(node.parent, "alias"), node.children_by_field_name("type")
    scopes.define(node, None, "")
    if alias is not None:
        one = len(types) == 1
        scopes.bind(alias.named_children[0], annotation(types[0]) if one else UNKNOWN_CHAIN)


def _call(scopes: Scopes, node: Any) -> None:
    function = field(node, "function")
    while function.type in ("parenthesized_expression", "index_expression"):
        function = field(function, "operand") or function.named_children[0]
    if function.type == "identifier" and text(function) not in PREDECLARED:
        scopes.call(function, chain(function))
    elif function.type == "selector_expression":
        scopes.call(field(function, "field"), chain(function))


VISITS = {
    "package_clause": _package,
    "import_spec": _import,
    "function_declaration": _function,
    "func_literal": _function,
    "method_declaration": _method,
    "type_spec": _type,
    "type_alias": _alias,
    "field_declaration": _field,
    "method_elem": _interface_method,
    "type_elem": _interface_type,
    "var_spec": _variables,
    "const_spec": _variables,
    "short_var_declaration": _short,
    "assignment_statement": _short,
    "range_clause": _range,
    "type_case": _case,
    "call_expression": _call,
}
