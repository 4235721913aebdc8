"""Read the facts of JavaScript and TypeScript from syntax trees."""

from typing import Any

from apps.code.callgraph.facts import (
    CALL,
    ELEMENT,
    LITERAL_CHAIN,
    LOCAL,
    MADE,
    MODULE,
    PROPERTY,
    PROTOTYPE,
    TYPE,
    UNKNOWN_CHAIN,
    Chain,
)
from apps.code.callgraph.javascript_chains import WRAPPERS, annotation, chain, declared, values_of
from apps.code.callgraph.javascript_components import (
    add_member,
    call,
    is_made,
    names_component,
    visit_dynamic_import,
    visit_element,
    visit_snippet,
    visit_tag,
    visit_url,
)
from apps.code.callgraph.javascript_modules import (
    FUNCTIONS,
    is_default,
    require,
    required,
    visit_export,
    visit_import,
)
from apps.code.callgraph.javascript_types import (
    takes_function,
    visit_alias,
    visit_field,
    visit_type,
    visit_type_parameter,
)
from apps.code.callgraph.scopes import Scopes, extended, field, passed, text

# --- definitions ----------------------------------------------------------------------------------


def _class(scopes: Scopes, node: Any) -> None:
    bases: list[Chain] = []
    for heritage in node.named_children:
        if heritage.type not in ("class_heritage", "extends_type_clause"):
            continue
        for clause in heritage.named_children:
            if clause.type in ("extends_clause", "implements_clause"):
                bases += [_base(child) for child in clause.named_children]
            else:
                bases.append(_base(clause))
    name = scopes.notes.get(("name", node.id)) or field(node, "name")
    given = "default" if name is None and is_default(node) else ""
    flags = (TYPE,) if node.type == "interface_declaration" else ()
    known = tuple(filter(None, bases))
    scopes.define(node, name, "class", name=given, bases=known, flags=flags)


def _base(node: Any) -> Chain:
    if node.type in ("type_identifier", "nested_type_identifier"):
        return tuple(text(node).split("."))
    if node.type == "generic_type":
        return tuple(text(field(node, "name")).split("."))
    return () if node.type == "type_arguments" else chain(node)


def _function(scopes: Scopes, node: Any) -> None:
    own = field(node, "name")
    name = scopes.notes.get(("name", node.id)) or own
    given = "default" if name is None and is_default(node) else ""
    fields = scopes.notes.get(("fields", node.id), {})
    body = field(node, "body")
    kind = "function" if name is not None or given else ""
    index = scopes.define(
        node, name, kind, name=given, returns=_returned(node), flags=_flags(node), **fields
    )
    if field(node, "return_type") is not None:
        scopes.notes["annotated", index] = True
    if name is not None:
        scopes.notes["function", text(name)] = index
        if own is not None and own.text != name.text:
            scopes.bind(own, (text(name),), scope=index)
    _parameters(scopes, node)
    is_value = body is not None and body.type != "statement_block"
    if node.type == "arrow_function" and is_value and field(node, "return_type") is None:
        scopes.returns(_returned_values(scopes, body), index)


def _returned(node: Any) -> tuple[Chain, ...]:
    return tuple(annotation(field(node, "return_type")))


def _flags(node: Any) -> tuple[str, ...]:
    return (PROPERTY,) if any(child.type == "get" for child in node.children) else ()


def _method(scopes: Scopes, node: Any) -> None:
    name = field(node, "name")
    index = scopes.define(node, name, "function", returns=_returned(node), flags=_flags(node))
    if field(node, "return_type") is not None:
        scopes.notes["annotated", index] = True
    _parameters(scopes, node)


def _signature(scopes: Scopes, node: Any) -> None:
    returns = _returned(node)
    scopes.define(node, field(node, "name"), "function", returns=returns, flags=(PROTOTYPE,))


def _parameters(scopes: Scopes, node: Any) -> None:
    single, every = field(node, "parameter"), field(node, "parameters")
    if single is not None:
        scopes.bind(single, _passed(node, 0))
    parameters: list[Any] = every.named_children if every is not None else []
    is_method = bool(parameters) and parameters[0].text.startswith(b"this")
    for at, parameter in enumerate(parameters[is_method:]):
        pattern, type_ = field(parameter, "pattern") or parameter, field(parameter, "type")
        value = field(parameter, "value") or (
            field(parameter, "right") if parameter is pattern else None
        )
        if pattern.type == "assignment_pattern":
            pattern = field(pattern, "left")
        values = annotation(type_)
        if not values:
            values = [_passed(node, at)] if value is None else values_of(value)
        _bind(scopes, pattern, values)
        if type_ is not None:
            takes_function(scopes, at, type_)
        modifiers = ("accessibility_modifier", "override_modifier", "readonly")
        if pattern.type == "identifier" and any(c.type in modifiers for c in parameter.children):
            _attribute(scopes, pattern, values)


def _passed(function: Any, parameter: int) -> Chain:
    """What a function that is an argument of a call gets as a parameter."""
    arguments = function.parent
    if arguments is None or arguments.type != "arguments" or parameter > 9:
        return UNKNOWN_CHAIN
    called = arguments.parent
    called_on = chain(field(called, "function") or field(called, "constructor"))
    if called_on[0].startswith("import(") and called_on[1:] == ("then",):
        return called_on[:1]
    return passed(called_on, function, parameter)


def _attribute(scopes: Scopes, name: Any, values: list[Chain]) -> None:
    """Bind an attribute of the enclosing class."""
    index = scopes.enclosing_class()
    for value in values if index != MODULE else ():
        scopes.bind(name, value, scope=index)


def _bind(scopes: Scopes, pattern: Any, values: list[Chain]) -> None:
    """Bind the names of a pattern."""
    stack = [(pattern, values)]
    while stack:
        part, chains = stack.pop()
        kind = part.type
        if kind in ("identifier", "shorthand_property_identifier_pattern"):
            member = kind != "identifier"
            scopes.bind_each(part, [extended(c, text(part)) if member else c for c in chains])
        elif kind == "object_pattern":
            stack += [(child, chains) for child in part.named_children]
        elif kind == "pair_pattern":
            key = text(field(part, "key"))
            stack.append((field(part, "value"), [extended(one, key) for one in chains]))
        elif kind in ("object_assignment_pattern", "assignment_pattern"):
            stack.append((field(part, "left"), chains))
        elif kind == "array_pattern":
            inner = [extended(one, ELEMENT) for one in chains]
            stack += [(child, inner) for child in part.named_children]
        elif kind == "rest_pattern" and part.named_children:
            stack.append((part.named_children[0], chains or [UNKNOWN_CHAIN]))


def _variable(scopes: Scopes, node: Any) -> None:
    name, value, type_ = (field(node, key) for key in ("name", "value", "type"))
    if _names_value(scopes, node, name, value):
        return
    if value is not None and (module := required(value)):
        require(scopes, name, module)
        return
    if is_made(scopes, name, value):
        returns = extended(chain(value), CALL)
        scopes.define(value, name, "function", flags=(MADE,), returns=(returns,), opens=False)
        return
    _bind(scopes, name, declared(type_, value))


def _names_value(scopes: Scopes, node: Any, name: Any, value: Any, **fields: Any) -> bool:
    """Give the name to a function, class or object that is its value. Return False for others."""
    while value is not None and value.type in ("as_expression", "satisfies_expression"):
        value = value.named_children[0]
    if value is None or name.type in ("object_pattern", "array_pattern"):
        return False
    if value.type in FUNCTIONS:
        scopes.notes["name", value.id] = name
        scopes.notes["fields", value.id] = fields
        return True
    if not fields and names_component(scopes, name, value):
        return True
    if value.type == "object" and not fields:
        _object(scopes, value, name)
        return True
    return False


def _pair(scopes: Scopes, node: Any) -> None:
    key, value = field(node, "key"), field(node, "value")
    if scopes.in_class and not _names_value(scopes, node, key, value):
        scopes.bind_each(key, values_of(value))


def _assignment(scopes: Scopes, node: Any) -> None:
    left, right = field(node, "left"), field(node, "right")
    if left.type == "identifier":
        if not _names_value(scopes, node, left, right):
            scopes.bind_each(left, values_of(right))
        return
    if left.type != "member_expression":
        return
    holder, name = field(left, "object"), field(left, "property")
    if holder.type == "this":
        index = scopes.enclosing_class()
        if right.type in FUNCTIONS and index != MODULE:
            _names_value(scopes, node, name, right, scope=index)
        else:
            _attribute(scopes, name, values_of(right))
    elif holder.text in (b"exports", b"module.exports"):
        _export_value(scopes, name, text(name), right)
    elif left.text == b"module.exports":
        _export_value(scopes, name, "=", right)
    elif holder.type == "member_expression" and text(field(holder, "property")) == "prototype":
        owner = text(field(holder, "object")).rpartition(".")[2]
        _names_value(scopes, node, name, right, owner=owner, scope=MODULE)
    elif holder.type == "identifier":
        _set_member(scopes, node, text(holder), name, right)


def _set_member(scopes: Scopes, node: Any, holder: str, name: Any, value: Any) -> None:
    if value.type in FUNCTIONS:
        _names_value(scopes, node, name, value, owner=holder, scope=MODULE)
    else:
        add_member(scopes, holder, name, values_of(value))


def _export_value(scopes: Scopes, node: Any, name: str, value: Any) -> None:
    """`exports.name = value`, and `module.exports = value` with the name "="."""
    if value.type == "object" and name == "=":
        for child in value.named_children:
            if child.type == "shorthand_property_identifier":
                scopes.add_import(child, text(child), "", text(child), exported=True)
            elif child.type == "pair" and field(child, "value").type == "identifier":
                key, inner = text(field(child, "key")), text(field(child, "value"))
                scopes.add_import(child, key, "", inner, exported=True)
        _names_value(scopes, node, node, value)
        scopes.add_import(node, "=", "", text(node), exported=True)
    elif value.type in FUNCTIONS:
        own = field(value, "name") or node
        scopes.notes["name", value.id] = own
        scopes.add_import(node, name, "", text(own), exported=True)
    elif value.type == "identifier":
        scopes.add_import(node, name, "", text(value), exported=True)
    elif module := required(value):
        scopes.add_import(node, name, module, "*", exported=True)


# --- calls and control flow -----------------------------------------------------------------------


def _call(scopes: Scopes, node: Any) -> None:
    function = field(node, "function")
    while function.type in WRAPPERS and function.named_children:
        function = function.named_children[0]
    if function.type == "import" or required(node):
        visit_dynamic_import(scopes, node)
    else:
        call(scopes, function)


def _new(scopes: Scopes, node: Any) -> None:
    visit_url(scopes, node)
    call(scopes, field(node, "constructor"))


def _return(scopes: Scopes, node: Any) -> None:
    if node.named_children and node.named_children[0].type != "comment":
        scopes.returns(_returned_values(scopes, node.named_children[0]))


def _returned_values(scopes: Scopes, node: Any) -> list[Chain]:
    """The chains of a value that a function returns. An object becomes a class without a name."""
    inner = node
    while inner.type in (*WRAPPERS, "as_expression") and inner.named_children:
        inner = inner.named_children[0]
    if inner.type != "object":
        return values_of(node)
    return [(f"{LOCAL}{_object(scopes, inner, None)}",)]


def _object(scopes: Scopes, node: Any, name: Any) -> int:
    outer = scopes.scope
    index = scopes.define(node, name, "class")
    for child in node.named_children:
        if child.type == "shorthand_property_identifier":
            scopes.bind(child, (text(child),), within=outer)
    return index


def _catch(scopes: Scopes, node: Any) -> None:
    parameter = field(node, "parameter")
    if parameter is not None:
        _bind(scopes, parameter, [UNKNOWN_CHAIN])


def _for(scopes: Scopes, node: Any) -> None:
    left, right = field(node, "left"), field(node, "right")
    is_of = any(child.type == "of" for child in node.children)
    _bind(scopes, left, [extended(chain(right), ELEMENT)] if is_of else [LITERAL_CHAIN])


VISITS = {
    **dict.fromkeys(("class_declaration", "class", "interface_declaration"), _class),
    "abstract_class_declaration": _class,
    **dict.fromkeys(("function_declaration", "generator_function_declaration"), _function),
    **dict.fromkeys(("function_expression", "arrow_function", "generator_function"), _function),
    **dict.fromkeys(("jsx_opening_element", "jsx_self_closing_element"), visit_element),
    **dict.fromkeys(("tag_name", "attribute_value", "raw_text_expr"), visit_tag),
    "snippet_name": visit_snippet,
    "method_definition": _method,
    **dict.fromkeys(
        ("method_signature", "abstract_method_signature", "function_signature"), _signature
    ),
    "variable_declarator": _variable,
    "assignment_expression": _assignment,
    "pair": _pair,
    "call_expression": _call,
    "new_expression": _new,
    "return_statement": _return,
    "catch_clause": _catch,
    "for_in_statement": _for,
    "import_statement": visit_import,
    "export_statement": visit_export,
    **dict.fromkeys(
        ("public_field_definition", "field_definition", "property_signature"), visit_field
    ),
    "type_alias_declaration": visit_alias,
    "type_parameter": visit_type_parameter,
    **dict.fromkeys(("enum_declaration", "internal_module", "module"), visit_type),
}
