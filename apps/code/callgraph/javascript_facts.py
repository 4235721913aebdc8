"""Read the facts of JavaScript and TypeScript from syntax trees."""

from typing import Any

from apps.code.callgraph.facts import (
    ARGUMENT,
    CALL,
    CONTAINER,
    ELEMENT,
    INSTANCE,
    LITERAL_CHAIN,
    LOCAL,
    MAX_CHAIN,
    MODULE,
    PROPERTY,
    PROTOTYPE,
    SELF,
    SUPER,
    TYPE,
    UNKNOWN_CHAIN,
    Chain,
    words,
)
from apps.code.callgraph.scopes import Scopes, Steps, field, follow, text

NODES = (
    "class_declaration class function_declaration variable_declarator"
    " generator_function_declaration function_expression arrow_function method_definition"
    " call_expression new_expression import_statement export_statement assignment_expression"
    " return_statement catch_clause for_in_statement pair generator_function"
)
TYPED_NODES = (
    " interface_declaration abstract_class_declaration method_signature abstract_method_signature function_signature"
    " public_field_definition property_signature type_alias_declaration enum_declaration"
    " internal_module module type_parameter"
)
FUNCTIONS = words("arrow_function function_expression generator_function class")
LITERALS = words(
    "string template_string number regex true false undefined array binary_expression "
    "unary_expression update_expression"
)
# Expressions that have the value of another one.
WRAPPERS = words(
    "parenthesized_expression await_expression non_null_expression satisfies_expression"
)
COLLECTIONS = words(
    "Array ReadonlyArray Set ReadonlySet Map ReadonlyMap WeakMap Iterable Iterator Generator "
    "AsyncIterable AsyncGenerator Record IterableIterator"
)
SAME = words("Promise Readonly Partial Required NonNullable Awaited PromiseLike")
BUILT_IN_TYPES = words(
    "template_literal_type type_predicate_annotation asserts_annotation function_type"
)
MAX_VALUES = 4


def values_of(node: Any) -> list[Chain]:
    """The chains that an expression may stand for. null stands for nothing."""
    values: list[Chain] = []
    stack = [node]
    while stack and len(values) < MAX_VALUES:
        each = stack.pop()
        operator = field(each, "operator")
        if each.type == "ternary_expression":
            stack += [field(each, "alternative"), field(each, "consequence")]
        elif operator is not None and operator.type in ("??", "||", "&&"):
            stack += [field(each, "right"), field(each, "left")]
        elif each.type == "parenthesized_expression" and each.named_children:
            stack.append(each.named_children[0])
        elif each.type not in ("null", "undefined"):
            values.append(chain(each))
    return list(dict.fromkeys(values))


def chain(node: Any) -> Chain:
    """The chain of an expression."""
    return follow(node, STEPS, LITERALS)


def _plain(node: Any, parts: list[str]) -> Any:
    parts.append(text(node))


def _this(node: Any, parts: list[str]) -> Any:
    parts.append(SELF if node.type == "this" else SUPER)


def _member(node: Any, parts: list[str]) -> Any:
    parts.append(text(field(node, "property")))
    return field(node, "object")


def _called(node: Any, parts: list[str]) -> Any:
    parts.append(CALL)
    return field(node, "function")


def _made(node: Any, parts: list[str]) -> Any:
    parts.append(INSTANCE)
    return field(node, "constructor")


def _indexed(node: Any, parts: list[str]) -> Any:
    parts.append(ELEMENT)
    return field(node, "object")


def _inner(node: Any, parts: list[str]) -> Any:
    return node.named_children[0]


def _asserted(node: Any, parts: list[str]) -> Any:
    """`value as Type` and `<Type>value`."""
    children, is_as = node.named_children, node.type == "as_expression"
    types = annotation(children[-1 if is_as else 0]) if len(children) > 1 else []
    if len(types) != 1 or types[0] == UNKNOWN_CHAIN:
        return children[0 if is_as else -1]
    parts += reversed(types[0])
    return None


def _array(node: Any, parts: list[str]) -> Any:
    held = chain(node.named_children[0]) if node.named_children else LITERAL_CHAIN
    parts += [CONTAINER, *reversed(held)]


STEPS: Steps = {
    **dict.fromkeys(("identifier", "shorthand_property_identifier"), _plain),
    **dict.fromkeys(("this", "super"), _this),
    "member_expression": _member,
    "call_expression": _called,
    "new_expression": _made,
    "subscript_expression": _indexed,
    **dict.fromkeys(WRAPPERS, _inner),
    **dict.fromkeys(("as_expression", "type_assertion"), _asserted),
    "array": _array,
}


def annotation(node: Any) -> list[Chain]:
    """The chains of the objects that a type allows. null stands for nothing."""
    types: list[Chain] = []
    stack = [node]
    while stack and len(types) < MAX_VALUES:
        each = stack.pop()
        if each.type in ("type_annotation", "parenthesized_type", "readonly_type") or each.type == "type_arguments":
            stack += each.named_children[:1]
        elif each.type in ("union_type", "intersection_type"):
            stack += reversed(each.named_children)
        elif each.type == "generic_type":
            _generic(each, types, stack)
        else:
            types += _simple_type(each)
    return types


def _simple_type(node: Any) -> list[Chain]:
    kind = node.type
    if kind in ("type_identifier", "nested_type_identifier"):
        return [(*text(node).split("."), INSTANCE)]
    if kind in ("array_type", "tuple_type"):
        inner = annotation(node.named_children[0])[:1] if node.named_children else []
        return [(*one, CONTAINER) for one in inner] or [LITERAL_CHAIN]
    if kind == "this_type":
        return [(SELF,)]
    if kind == "type_query":
        return [chain(node.named_children[0])]
    if kind in ("predefined_type", "literal_type"):
        if node.text in (b"null", b"undefined"):
            return []
        is_open = node.text in (b"any", b"unknown", b"object")
        return [UNKNOWN_CHAIN if is_open else LITERAL_CHAIN]
    return [LITERAL_CHAIN if kind in BUILT_IN_TYPES else UNKNOWN_CHAIN]


def _generic(node: Any, types: list[Chain], stack: list[Any]) -> None:
    head, arguments = field(node, "name"), field(node, "type_arguments")
    name, inner = text(head), arguments.named_children if arguments is not None else []
    if name in SAME and inner:
        stack.append(inner[0])
    elif name in COLLECTIONS and inner:
        types.extend((*one, CONTAINER) for one in annotation(inner[-1])[:1])
    else:
        types.append((*name.split("."), INSTANCE))


# --- definitions ----------------------------------------------------------------------------------


def _class(scopes: Scopes, node: Any) -> None:
    bases: list[Chain] = []
    for heritage in node.named_children:
        if heritage.type not in ("class_heritage", "extends_type_clause"):
            continue
        for clause in heritage.named_children:
            if clause.type in ("extends_clause", "implements_clause"):
                bases += [_base(each) for each in clause.named_children]
            else:
                bases.append(_base(clause))
    name = field(node, "name") or scopes.notes.get(("name", node.id))
    given = "default" if name is None and _is_default(node) else ""
    flags = (TYPE,) if node.type == "interface_declaration" else ()
    found = tuple(each for each in bases if each)
    scopes.define(node, name, "class", name=given, bases=found, flags=flags)


def _base(node: Any) -> Chain:
    if node.type in ("type_identifier", "nested_type_identifier"):
        return tuple(text(node).split("."))
    if node.type == "generic_type":
        return tuple(text(field(node, "name")).split("."))
    return () if node.type == "type_arguments" else chain(node)


def _function(scopes: Scopes, node: Any) -> None:
    name = field(node, "name") or scopes.notes.get(("name", node.id))
    given = "default" if name is None and _is_default(node) else ""
    fields = scopes.notes.get(("fields", node.id), {})
    body = field(node, "body")
    kind = "function" if name is not None or given else ""
    index = scopes.define(
        node, name, kind, name=given, returns=_returned(node), flags=_flags(node), **fields
    )
    if index != MODULE and field(node, "return_type") is not None:
        scopes.notes["annotated", index] = True
    _parameters(scopes, node)
    is_value = body is not None and body.type != "statement_block"
    if node.type == "arrow_function" and is_value and field(node, "return_type") is None:
        scopes.returns(_returned_values(scopes, body), index)


def _is_default(node: Any) -> bool:
    parent = node.parent
    return bool(
        parent is not None
        and parent.type == "export_statement"
        and any(each.type == "default" for each in parent.children)
    )


def _returned(node: Any) -> tuple[Chain, ...]:
    type_ = field(node, "return_type")
    return tuple(annotation(type_)) if type_ is not None else ()


def _flags(node: Any) -> tuple[str, ...]:
    return (PROPERTY,) if any(each.type == "get" for each in node.children) else ()


def _method(scopes: Scopes, node: Any) -> None:
    name = field(node, "name")
    index = scopes.define(node, name, "function", returns=_returned(node), flags=_flags(node))
    if field(node, "return_type") is not None:
        scopes.notes["annotated", index] = True
    _parameters(scopes, node)


def _signature(scopes: Scopes, node: Any) -> None:
    scopes.define(
        node, field(node, "name"), "function", returns=_returned(node), flags=(PROTOTYPE,)
    )


def _parameters(scopes: Scopes, node: Any) -> None:
    single, every = field(node, "parameter"), field(node, "parameters")
    if single is not None:
        scopes.bind(single, _passed(node, 0))
    parameters: list[Any] = every.named_children if every is not None else []
    is_method = bool(parameters) and parameters[0].text.startswith(b"this")
    for at, each in enumerate(parameters[is_method:]):
        pattern, type_ = field(each, "pattern") or each, field(each, "type")
        value = field(each, "value") or (field(each, "right") if each is pattern else None)
        if pattern.type == "assignment_pattern":
            pattern = field(pattern, "left")
        values = annotation(type_) if type_ is not None else []
        if not values:
            values = [_passed(node, at)] if value is None else values_of(value)
        _bind(scopes, pattern, values)
        if type_ is not None:
            _takes_function(scopes, at, type_)
        modifiers = ("accessibility_modifier", "override_modifier", "readonly")
        if pattern.type == "identifier" and any(c.type in modifiers for c in each.children):
            _attribute(scopes, pattern, values)


def _passed(function: Any, parameter: int) -> Chain:
    """What a function that is an argument of a call gets as a parameter."""
    arguments = function.parent
    if arguments is None or arguments.type != "arguments" or parameter > 9:
        return UNKNOWN_CHAIN
    called = arguments.parent
    callee = field(called, "function") or field(called, "constructor")
    position = [each.id for each in arguments.named_children].index(function.id)
    return _part(chain(callee), f"{ARGUMENT}{position}.{parameter}")


def _takes_function(scopes: Scopes, position: int, type_: Any) -> None:
    """Note the parameters of a function that a parameter takes."""
    stack = list(type_.named_children)
    while stack:
        each = stack.pop()
        if each.type in ("union_type", "parenthesized_type"):
            stack += each.named_children
        elif each.type == "function_type":
            inner = field(each, "parameters").named_children
            named = [one for one in inner if not one.text.startswith(b"this")]
            for at, one in enumerate(named):
                if (given := field(one, "type")) is not None:
                    for value in annotation(given):
                        scopes.bind(one, value, name=f"{ARGUMENT}{position}.{at}")


def _attribute(scopes: Scopes, name: Any, values: list[Chain]) -> None:
    """Bind an attribute of the enclosing class."""
    index = scopes.enclosing_class()
    for value in values if index != MODULE else ():
        scopes.bind(name, value, scope=index)


def _bind(scopes: Scopes, pattern: Any, values: list[Chain]) -> None:
    """Bind the names of a pattern."""
    stack = [(pattern, values)]
    while stack:
        each, chains = stack.pop()
        kind = each.type
        if kind in ("identifier", "shorthand_property_identifier_pattern"):
            member = kind != "identifier"
            scopes.bind_each(each, [_part(c, text(each)) if member else c for c in chains])
        elif kind == "object_pattern":
            stack += [(child, chains) for child in each.named_children]
        elif kind == "pair_pattern":
            key = text(field(each, "key"))
            stack.append((field(each, "value"), [_part(one, key) for one in chains]))
        elif kind in ("object_assignment_pattern", "assignment_pattern"):
            stack.append((field(each, "left"), chains))
        elif kind == "array_pattern":
            inner = [_part(one, ELEMENT) for one in chains]
            stack += [(child, inner) for child in each.named_children]
        elif kind == "rest_pattern" and each.named_children:
            stack.append((each.named_children[0], chains or [UNKNOWN_CHAIN]))


def _part(value: Chain, name: str) -> Chain:
    return (*value, name) if len(value) < MAX_CHAIN else UNKNOWN_CHAIN


def _variable(scopes: Scopes, node: Any) -> None:
    name, value, type_ = (field(node, each) for each in ("name", "value", "type"))
    if _names_value(scopes, node, name, value):
        return
    if value is not None and (module := _required(value)):
        _require(scopes, name, module)
        return
    values = annotation(type_) if type_ is not None else []
    if not values or values == [UNKNOWN_CHAIN]:
        values = values_of(value) if value is not None else values or [UNKNOWN_CHAIN]
    _bind(scopes, name, values)


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
    if value.type == "object" and not fields:
        _object(scopes, value, name)
        return True
    return False


def _pair(scopes: Scopes, node: Any) -> None:
    key, value = field(node, "key"), field(node, "value")
    if scopes.scope == MODULE or scopes.definitions[scopes.scope].kind != "class":
        return
    if not _names_value(scopes, node, key, value):
        scopes.bind_each(key, values_of(value))


def _required(node: Any) -> str:
    """The module of `require('module')`, else ""."""
    if node.type != "call_expression" or field(node, "function").text != b"require":
        return ""
    arguments = field(node, "arguments")
    strings = arguments.named_children if arguments is not None else []
    return _quoted(strings[0]) if len(strings) == 1 and strings[0].type == "string" else ""


def _quoted(node: Any) -> str:
    return text(node).strip("\"'`")


def _require(scopes: Scopes, pattern: Any, module: str) -> None:
    if pattern.type == "identifier":
        scopes.add_import(pattern, text(pattern), module)
    for each in pattern.named_children if pattern.type == "object_pattern" else ():
        if each.type == "shorthand_property_identifier_pattern":
            scopes.add_import(each, text(each), module, text(each))
        elif each.type == "pair_pattern" and field(each, "value").type == "identifier":
            scopes.add_import(each, text(field(each, "value")), module, text(field(each, "key")))


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
    elif holder.type == "identifier" and right.type in FUNCTIONS:
        _names_value(scopes, node, name, right, owner=text(holder), scope=MODULE)


def _export_value(scopes: Scopes, node: Any, name: str, value: Any) -> None:
    """`exports.name = value`, and `module.exports = value` with the name "="."""
    if value.type == "object" and name == "=":
        for each in value.named_children:
            if each.type == "shorthand_property_identifier":
                scopes.add_import(each, text(each), "", text(each), exported=True)
            elif each.type == "pair" and field(each, "value").type == "identifier":
                key, inner = text(field(each, "key")), text(field(each, "value"))
                scopes.add_import(each, key, "", inner, exported=True)
        _names_value(scopes, node, node, value)
    elif value.type in FUNCTIONS:
        scopes.notes["name", value.id] = node
        if name == "=":
            scopes.add_import(node, "=", "", text(node), exported=True)
    elif value.type == "identifier":
        scopes.add_import(node, name, "", text(value), exported=True)
    elif module := _required(value):
        scopes.add_import(node, name, module, "*", exported=True)


# --- calls and control flow -----------------------------------------------------------------------


def _call(scopes: Scopes, node: Any) -> None:
    function = field(node, "function")
    while function.type in WRAPPERS and function.named_children:
        function = function.named_children[0]
    if function.type == "identifier":
        if _required(node):
            if scopes.scope == MODULE and node.parent.type == "expression_statement":
                scopes.add_import(node, "", _required(node))
            return
        scopes.call(function, chain(function))
    elif function.type == "member_expression":
        scopes.call(field(function, "property"), chain(function))
    elif function.type == "import":
        arguments = field(node, "arguments").named_children
        if arguments and arguments[0].type == "string":
            scopes.add_import(node, "", _quoted(arguments[0]))


def _new(scopes: Scopes, node: Any) -> None:
    constructor = field(node, "constructor")
    if constructor.type == "identifier":
        scopes.call(constructor, chain(constructor))
    elif constructor.type == "member_expression":
        scopes.call(field(constructor, "property"), chain(constructor))


def _return(scopes: Scopes, node: Any) -> None:
    if node.named_children and node.named_children[0].type != "comment":
        function = scopes.function()
        scopes.returns(_returned_values(scopes, node.named_children[0]), function)


def _returned_values(scopes: Scopes, node: Any) -> list[Chain]:
    """The chains of a value that a function returns. An object becomes a class without a name."""
    inner = node
    while inner.type in (*WRAPPERS, "as_expression") and inner.named_children:
        inner = inner.named_children[0]
    if inner.type != "object":
        return values_of(node)
    return [(f"{LOCAL}{_object(scopes, inner, None)}",)]


def _object(scopes: Scopes, node: Any, name: Any) -> int:
    index = scopes.define(node, name, "class")
    for each in node.named_children:
        if each.type == "shorthand_property_identifier":
            scopes.bind(each, (text(each),))
    return index


def _catch(scopes: Scopes, node: Any) -> None:
    parameter = field(node, "parameter")
    if parameter is not None:
        _bind(scopes, parameter, [UNKNOWN_CHAIN])


def _for(scopes: Scopes, node: Any) -> None:
    left, right = field(node, "left"), field(node, "right")
    is_of = any(each.type == "of" for each in node.children)
    _bind(scopes, left, [_part(chain(right), ELEMENT)] if is_of else [LITERAL_CHAIN])


# --- imports and exports --------------------------------------------------------------------------


def _import(scopes: Scopes, node: Any) -> None:
    source = field(node, "source")
    clauses = [each for each in node.named_children if each.type == "import_clause"]
    for each in node.named_children:
        if each.type == "import_require_clause":
            scopes.add_import(each, text(each.named_children[0]), _quoted(field(each, "source")))
    if source is None:
        return
    module = _quoted(source)
    if not clauses:
        scopes.add_import(node, "", module)
    for each in clauses[0].named_children if clauses else ():
        if each.type == "identifier":
            scopes.add_import(each, text(each), module, "default")
        elif each.type == "namespace_import":
            scopes.add_import(each, text(each.named_children[0]), module, "*")
        for one in each.named_children if each.type == "named_imports" else ():
            name = text(field(one, "name") or one.children[0])
            alias = field(one, "alias")
            scopes.add_import(one, text(alias) if alias is not None else name, module, name)


def _export(scopes: Scopes, node: Any) -> None:
    source, value = field(node, "source"), field(node, "value")
    module = _quoted(source) if source is not None else ""
    has_names = False
    for each in node.named_children:
        if each.type == "namespace_export":
            has_names = True
            scopes.add_import(each, text(each.named_children[0]), module, "*", exported=True)
        for one in each.named_children if each.type == "export_clause" else ():
            has_names = True
            name, alias = field(one, "name") or one.children[0], field(one, "alias")
            exported = text(alias) if alias is not None else text(name)
            scopes.add_import(one, exported, module, text(name), exported=True)
    if module and not has_names:
        scopes.add_import(node, "*", module, "*", exported=True)
    declared = field(node, "declaration")
    name = value if value is not None and value.type == "identifier" else None
    if declared is not None and _is_default(declared):
        name = field(declared, "name")
    if name is not None:
        scopes.add_import(name, "default", "", text(name), exported=True)
    elif value is not None and value.type not in FUNCTIONS:
        for each in values_of(value):
            scopes.bind(node, each, name="default")


# --- types ----------------------------------------------------------------------------------------


def _field(scopes: Scopes, node: Any) -> None:
    name, value, type_ = field(node, "name"), field(node, "value"), field(node, "type")
    if value is not None and value.type in FUNCTIONS:
        scopes.notes["name", value.id] = name
        return
    if type_ is not None and (function := _function_type(type_)) is not None:
        scopes.define(
            node,
            name,
            "function",
            opens=False,
            returns=tuple(annotation(field(function, "return_type"))),
            flags=(PROTOTYPE,),
        )
        return
    values = annotation(type_) if type_ is not None else []
    if not values or values == [UNKNOWN_CHAIN]:
        values = values_of(value) if value is not None else [UNKNOWN_CHAIN]
    scopes.bind_each(name, values)


def _function_type(type_: Any) -> Any:
    inner = type_.named_children[0] if type_.named_children else None
    return inner if inner is not None and inner.type == "function_type" else None


def _alias(scopes: Scopes, node: Any) -> None:
    value = field(node, "value")
    if value.type == "object_type":
        scopes.define(node, field(node, "name"), "class", flags=(TYPE,))
        return
    if value.type == "intersection_type":
        bases = tuple(each[:-1] for each in annotation(value) if each[-1] == INSTANCE)
        scopes.define(node, field(node, "name"), "class", bases=bases, flags=(TYPE,))
        return
    for each in annotation(value):
        scopes.bind(field(node, "name"), each[:-1] if each[-1] == INSTANCE else each)


def _type_parameter(scopes: Scopes, node: Any) -> None:
    constraint = field(node, "constraint")
    values = annotation(constraint.named_children[0]) if constraint is not None else []
    for each in values or [UNKNOWN_CHAIN]:
        scopes.bind(field(node, "name"), each[:-1] if each[-1] == INSTANCE else each)


def _type(scopes: Scopes, node: Any) -> None:
    name = field(node, "name")
    if name is not None:
        scopes.define(node, name, "class", name=text(name).strip("\"'"))


VISITS = {
    **dict.fromkeys(("class_declaration", "class", "interface_declaration"), _class),
    "abstract_class_declaration": _class,
    **dict.fromkeys(("function_declaration", "generator_function_declaration"), _function),
    **dict.fromkeys(("function_expression", "arrow_function", "generator_function"), _function),
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
    "import_statement": _import,
    "export_statement": _export,
    **dict.fromkeys(("public_field_definition", "field_definition", "property_signature"), _field),
    "type_alias_declaration": _alias,
    "type_parameter": _type_parameter,
    **dict.fromkeys(("enum_declaration", "internal_module", "module"), _type),
}
