"""Read the facts of C and C++ from syntax trees."""

from collections.abc import Iterator
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
    PRIVATE,
    PROTOTYPE,
    Chain,
)
from apps.code.callgraph.scopes import Scopes, extended, field, text
from apps.code.syntax.declarators import macro_name
from apps.code.values import words

LITERALS = words(
    "string_literal char_literal number_literal binary_expression true false null "
    "sizeof_expression unary_expression concatenated_string assignment_expression "
    "update_expression"
)
# Class templates whose objects stand for what they hold, and those of collections.
POINTERS = words("unique_ptr shared_ptr weak_ptr optional reference_wrapper atomic")
COLLECTIONS = words("vector list deque set unordered_set map unordered_map array span queue stack")
DECLARATORS = words(
    "pointer_declarator reference_declarator function_declarator array_declarator "
    "init_declarator parenthesized_declarator attributed_declarator"
)
NAMES = frozenset({"identifier", "type_identifier", "namespace_identifier", "field_identifier"})


def chain(node: Any) -> Chain:
    """The chain of an expression. A pointer stands for what it points to."""
    return steps.follow(node, STEPS, LITERALS)


def _member(node: Any, parts: list[str]) -> Any:
    parts.append(_name(field(node, "field")))
    return field(node, "argument")


def _scoped(node: Any, parts: list[str]) -> Any:
    parts += reversed(_qualified(node))


def _typed(node: Any, parts: list[str]) -> Any:
    parts += reversed(annotation(field(node, "type")))


STEPS: steps.Steps = {
    **dict.fromkeys(NAMES, steps.plain),
    "this": steps.this,
    "field_expression": _member,
    "qualified_identifier": _scoped,
    "template_function": steps.inner("name"),
    "call_expression": steps.applied(CALL, "function"),
    "subscript_expression": steps.applied(ELEMENT, "argument"),
    **dict.fromkeys(("pointer_expression", "parenthesized_expression"), steps.inner("argument")),
    **dict.fromkeys(("new_expression", "cast_expression", "compound_literal_expression"), _typed),
}


def _name(node: Any) -> str:
    """The last name of a field or type, without the arguments of a template."""
    while node.type in ("template_method", "template_type", "template_function"):
        node = field(node, "name")
    return text(node)


def _qualified(node: Any) -> list[str]:
    """The parts of `a::b::c`; `::c` has one part."""
    parts: list[str] = []
    while node.type == "qualified_identifier" and len(parts) < MAX_CHAIN:
        scope = field(node, "scope")
        parts += [_name(scope)] if scope is not None else []
        node = field(node, "name")
    return [*parts, _name(node)]


def annotation(node: Any) -> Chain:
    """The chain of a value of a type."""
    kind = node.type
    if kind == "type_descriptor":
        return annotation(field(node, "type"))
    if kind in ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier"):
        name = field(node, "name")
        return (_name(name), INSTANCE) if name is not None else LITERAL_CHAIN
    if kind == "template_type":
        arguments = field(node, "arguments").named_children
        types = [argument for argument in arguments if argument.type == "type_descriptor"]
        if types and _name(node) in POINTERS:
            return annotation(types[0])
        if types and _name(node) in COLLECTIONS:
            return (*annotation(types[-1]), CONTAINER)
        return (_name(node), INSTANCE)
    if kind == "qualified_identifier":
        inner = node
        while inner.type == "qualified_identifier":
            inner = field(inner, "name")
        scope = field(node, "scope")
        if inner.type == "template_type" or (scope is not None and scope.text == b"std"):
            return annotation(inner)
        return (*_qualified(node), INSTANCE)
    return (text(node), INSTANCE) if kind == "type_identifier" else LITERAL_CHAIN


def _innermost(node: Any) -> Any:
    """The name inside a declarator."""
    while node is not None and node.type in DECLARATORS:
        if (name := macro_name(node)) is not None:
            return name
        inner = field(node, "declarator")
        node = inner if inner is not None else (node.named_children or [None])[-1]
    return node


def _declared(node: Any) -> Iterator[tuple[Any, Any]]:
    """The declarators of a declaration that have a name, and the name."""
    for declarator in node.children_by_field_name("declarator"):
        name = _innermost(declarator)
        if name is not None and name.type in NAMES:
            yield declarator, name


def _takes_arguments(node: Any) -> bool:
    """Whether a declarator declares a function, not a pointer to one."""
    while node is not None and node.type in ("pointer_declarator", "reference_declarator"):
        node = field(node, "declarator") or (node.named_children or [None])[-1]
    if node is None or node.type != "function_declarator":
        return False
    inner = field(node, "declarator")
    return inner is not None and inner.type != "parenthesized_declarator"


def _include(scopes: Scopes, node: Any) -> None:
    scopes.add_import(node, "", text(field(node, "path")).strip('"<>'))


def _macro(scopes: Scopes, node: Any) -> None:
    scopes.define(node, field(node, "name"), "function", opens=False)


def _returned(node: Any) -> tuple[Chain, ...]:
    type_ = field(node, "type")
    return (annotation(type_),) if type_ is not None else ()


def _function(scopes: Scopes, node: Any) -> None:
    name = _innermost(field(node, "declarator"))
    owner = ""
    if name is not None and name.type == "qualified_identifier":
        owner = "".join(_qualified(name)[-2:-1])
        while name.type == "qualified_identifier":
            name = field(name, "name")
    storage = [c.text for c in node.named_children if c.type == "storage_class_specifier"]
    is_private = b"static" in storage and scopes.enclosing_class() == MODULE
    flags = (PRIVATE,) if is_private else ()
    scopes.define(node, name, "function", owner=owner, returns=_returned(node), flags=flags)


def _declaration(scopes: Scopes, node: Any) -> None:
    type_ = field(node, "type")
    for declarator, name in _declared(node) if type_ is not None else ():
        if _takes_arguments(declarator):
            _prototype(scopes, node, name)
            continue
        value = field(declarator, "value") if declarator.type == "init_declarator" else None
        if value is not None and value.type == "lambda_expression":
            scopes.notes["name", value.id] = name
        elif type_.type == "placeholder_type_specifier":
            scopes.bind(name, chain(value))
        else:
            scopes.bind(name, annotation(type_))


def _prototype(scopes: Scopes, node: Any, name: Any) -> None:
    """A function that is declared: in a class, its methods are defined elsewhere."""
    if scopes.in_class:
        returns = _returned(node)
        scopes.define(node, name, "function", opens=False, returns=returns, flags=(PROTOTYPE,))


def _field(scopes: Scopes, node: Any) -> None:
    for declarator, name in _declared(node):
        if _takes_arguments(declarator):
            _prototype(scopes, node, name)
        else:
            scopes.bind(name, _value_of(declarator, node))


def _parameter(scopes: Scopes, node: Any) -> None:
    """Bind a parameter of the function that is open. Those of prototypes name nothing."""
    for declarator, name in _declared(node) if scopes.function() != MODULE else ():
        scopes.bind(name, _value_of(declarator, node))


def _value_of(declarator: Any, node: Any) -> Chain:
    """The value of what a field or parameter declares. Calls of pointers to functions lead
    nowhere."""
    is_pointer = declarator.type == "function_declarator"
    return LITERAL_CHAIN if is_pointer else annotation(field(node, "type"))


def _typedef(scopes: Scopes, node: Any) -> None:
    type_ = field(node, "type")
    for declarator, name in _declared(node):
        is_struct = type_.type in ("struct_specifier", "union_specifier", "class_specifier")
        if is_struct and field(type_, "name") is None and field(type_, "body") is not None:
            scopes.notes["name", type_.id] = name
            return
        value = _value_of(declarator, node)
        if annotation(type_)[0] != text(name):
            scopes.bind(name, value[:-1] or LITERAL_CHAIN)


def _class(scopes: Scopes, node: Any) -> None:
    name = field(node, "name") or scopes.notes.get(("name", node.id))
    if field(node, "body") is None:
        return
    bases: list[Chain] = []
    for clause in node.named_children:
        if clause.type == "base_class_clause":
            types = [child for child in clause.named_children if child.type != "access_specifier"]
            bases += [annotation(type_)[:-1] for type_ in types]
    known = tuple(filter(None, bases))
    short = _qualified(name)[-1] if name is not None else ""
    scopes.define(node, name, "class", name=short, bases=known)


def _namespace(scopes: Scopes, node: Any) -> None:
    name = field(node, "name")
    if name is not None:
        scopes.define(node, name, "class")


def _alias(scopes: Scopes, node: Any) -> None:
    value = annotation(field(node, "type"))
    scopes.bind(field(node, "name"), value[:-1] or LITERAL_CHAIN)


def _using(scopes: Scopes, node: Any) -> None:
    name = node.named_children[-1]
    if name.type == "qualified_identifier":
        parts = _qualified(name)
        scopes.bind(name, tuple(parts), name=parts[-1])


def _lambda(scopes: Scopes, node: Any) -> None:
    name = scopes.notes.get(("name", node.id))
    scopes.define(node, name, "function" if name is not None else "")


def _for(scopes: Scopes, node: Any) -> None:
    type_, name = field(node, "type"), _innermost(field(node, "declarator"))
    if type_.type == "placeholder_type_specifier":
        scopes.bind(name, extended(chain(field(node, "right")), ELEMENT))
    else:
        scopes.bind(name, annotation(type_))


def _named_by_macro(node: Any) -> Any:
    """`name` in the call `NAMED(name)(1)`, if the macro is written in capitals."""
    arguments = field(node, "arguments").named_children
    return arguments[0] if text(field(node, "function")).isupper() and arguments else None


def _call(scopes: Scopes, node: Any) -> None:
    function = field(node, "function")
    if function.type == "template_function":
        function = field(function, "name")
    if function.type == "call_expression":
        function = _named_by_macro(function) or function
    if function.type == "identifier":
        scopes.call(function, chain(function))
    elif function.type == "field_expression":
        scopes.call(field(function, "field"), chain(function))
    elif function.type == "qualified_identifier":
        name = function
        while name.type in ("qualified_identifier", "template_function"):
            name = field(name, "name")
        scopes.call(name, chain(function))


def _unclear_call(scopes: Scopes, node: Any) -> None:
    """`Type name(call(x));` in a function, which the grammar of CUDA reads as a declaration."""
    function, declared = field(node.parent, "type"), node.parent.parent.parent.parent
    is_local = declared.type == "declaration" and scopes.function() != MODULE
    if is_local and function.type == "type_identifier":
        scopes.call(function, (text(function),))


def _new(scopes: Scopes, node: Any) -> None:
    value = annotation(field(node, "type"))
    if value[-1] == INSTANCE:
        scopes.call(field(node, "type"), value[:-1])


VISITS = {
    "preproc_include": _include,
    "preproc_function_def": _macro,
    "function_definition": _function,
    "declaration": _declaration,
    "field_declaration": _field,
    "parameter_declaration": _parameter,
    "type_definition": _typedef,
    **dict.fromkeys(("struct_specifier", "union_specifier", "enum_specifier"), _class),
    "class_specifier": _class,
    "namespace_definition": _namespace,
    "alias_declaration": _alias,
    "using_declaration": _using,
    "lambda_expression": _lambda,
    "for_range_loop": _for,
    "call_expression": _call,
    "abstract_function_declarator": _unclear_call,
    "new_expression": _new,
}
