"""Read the facts of Rust from syntax trees."""

import re
from collections.abc import Sequence
from typing import Any

from apps.code.callgraph import steps
from apps.code.callgraph.facts import (
    CALL,
    CLASS,
    CONTAINER,
    ELEMENT,
    INSTANCE,
    LITERAL_CHAIN,
    MAX_CHAIN,
    MODULE,
    PROTOTYPE,
    SELF,
    UNKNOWN,
    UNKNOWN_CHAIN,
    Chain,
)
from apps.code.callgraph.scopes import Scopes, children, extended, field, text, type_of
from apps.code.values import words

OUTER = re.compile(r"\Asuper\b")
# Types whose methods give what they hold, and these methods.
WRAPPERS = words("Option Result Box Rc Arc RefCell Cell Mutex RwLock Ref RefMut Cow Pin MutexGuard")
UNWRAPS = words(
    "unwrap expect as_ref as_mut clone borrow borrow_mut lock read write to_owned unwrap_or "
    "unwrap_or_default unwrap_or_else ok cloned as_deref as_deref_mut take into_inner get_mut "
    "ok_or ok_or_else map_err deref deref_mut"
)
COLLECTIONS = words("Vec VecDeque HashMap BTreeMap HashSet BTreeSet IndexMap SmallVec")
LITERALS = words(
    "string_literal raw_string_literal integer_literal float_literal boolean_literal "
    "char_literal binary_expression array_expression tuple_expression unit_expression "
    "range_expression"
)


def chain(node: Any) -> Chain:
    """The chain of an expression. What a wrapper holds stands for the wrapper."""
    return steps.follow(node, STEPS, LITERALS)


def _name(node: Any, parts: list[str]) -> Any:
    parts.append(CLASS if node.text == b"Self" else text(node))


def _called(node: Any, parts: list[str]) -> Any:
    function = field(node, "function")
    named = field(function, "field") if function.type == "field_expression" else None
    if named is not None and text(named) in UNWRAPS:
        return field(function, "value")
    if function.type == "identifier" and function.text in (b"Some", b"Ok", b"Box"):
        return field(node, "arguments").named_children[0]
    parts.append(CALL)
    return function


def _indexed(node: Any, parts: list[str]) -> Any:
    parts.append(ELEMENT)
    return node.named_children[0]


def _typed(node: Any, parts: list[str]) -> Any:
    parts += reversed(annotation(field(node, "name") or field(node, "type")))


STEPS: steps.Steps = {
    **dict.fromkeys(("identifier", "type_identifier", "self", "crate", "super"), _name),
    "field_expression": steps.member("field", "value"),
    **dict.fromkeys(("scoped_identifier", "scoped_type_identifier"), steps.member("name", "path")),
    "call_expression": _called,
    "index_expression": _indexed,
    **dict.fromkeys(("generic_function", "generic_type"), steps.inner("function")),
    **dict.fromkeys(("struct_expression", "type_cast_expression"), _typed),
    **dict.fromkeys(
        ("try_expression", "await_expression", "parenthesized_expression"), steps.inner("value", -1)
    ),
    **dict.fromkeys(("reference_expression", "unary_expression"), steps.inner("value", -1)),
}


def annotation(node: Any) -> Chain:
    """The chain of a value of a type."""
    suffix: list[str] = []
    while True:
        kind = node.type
        if kind in ("reference_type", "pointer_type"):
            node = field(node, "type")
        elif kind in ("dynamic_type", "abstract_type"):
            node = field(node, "trait")
        elif kind in ("array_type", "slice_type"):
            node = field(node, "element") or node.named_children[0]
            suffix.append(CONTAINER)
        elif kind == "generic_type":
            head, arguments = field(node, "type"), field(node, "type_arguments").named_children
            name = text(head).rpartition("::")[2]
            types = [argument for argument in arguments if argument.type != "lifetime"]
            if types and name in WRAPPERS:
                node = types[0]
            elif types and name in COLLECTIONS:
                node = types[-1]
                suffix.append(CONTAINER)
            else:
                node = head
        elif kind in ("type_identifier", "identifier") and node.text == b"Self":
            return (SELF, *reversed(suffix))
        elif kind in ("type_identifier", "scoped_type_identifier", "identifier"):
            return (*chain(node), INSTANCE, *reversed(suffix))[: MAX_CHAIN + 1]
        else:
            return LITERAL_CHAIN


def _use(scopes: Scopes, node: Any) -> None:
    """Add imports. In a module inside of a file, `super` is the file."""
    start = len(scopes.imports)
    _uses(scopes, node)
    if scopes.enclosing_class() != MODULE:
        for at in range(start, len(scopes.imports)):
            import_ = scopes.imports[at]
            scopes.imports[at] = import_._replace(module=OUTER.sub("self", import_.module))


def _uses(scopes: Scopes, node: Any) -> None:
    stack: list[tuple[str, Any]] = [("", field(node, "argument"))]
    while stack:
        prefix, part = stack.pop()
        kind = part.type
        if kind == "scoped_use_list":
            inner = _path(prefix, text(field(part, "path")))
            stack += [(inner, one) for one in reversed(field(part, "list").named_children)]
        elif kind == "use_list":
            stack += [(prefix, one) for one in reversed(part.named_children)]
        elif kind == "use_as_clause":
            module, _, name = _path(prefix, text(field(part, "path"))).rpartition("::")
            scopes.add_import(part, text(field(part, "alias")), module, name)
        elif kind == "use_wildcard":
            inner = text(part.named_children[0]) if part.named_children else ""
            scopes.add_import(part, "*", _path(prefix, inner), "*")
        elif kind == "self":
            module, _, name = prefix.rpartition("::")
            scopes.add_import(part, name, module, name)
        else:
            module, _, name = _path(prefix, text(part)).rpartition("::")
            scopes.add_import(part, name, module, name)


def _path(*parts: str) -> str:
    return "::".join(part.strip() for part in parts if part)


def _module(scopes: Scopes, node: Any) -> None:
    name = field(node, "name")
    if field(node, "body") is not None:
        scopes.define(node, name, "class")
    else:
        scopes.add_import(node, text(name), "self", f"mod {text(name)}")


def _bounds(node: Any) -> tuple[Chain, ...]:
    """The traits that a type has."""
    types = (annotation(child)[:-1] for child in children(node, "bounds"))
    return tuple(filter(None, types))


def _type(scopes: Scopes, node: Any) -> None:
    index = scopes.define(node, field(node, "name"), "class", bases=_bounds(node))
    scopes.notes["type", scopes.definitions[index].name] = index
    body = field(node, "body")
    if body is not None and body.type == "ordered_field_declaration_list":
        for at, type_ in enumerate(body.children_by_field_name("type")):
            scopes.bind(type_, annotation(type_), name=str(at))


def _impl(scopes: Scopes, node: Any) -> None:
    trait, type_ = field(node, "trait"), field(node, "type")
    index = scopes.notes.get(("type", annotation(type_)[0]))
    if trait is not None and index is not None and (base := annotation(trait)[:-1]):
        definition = scopes.definitions[index]
        scopes.definitions[index] = definition._replace(bases=(*definition.bases, base))


def _function(scopes: Scopes, node: Any) -> None:
    name, returned, outer = field(node, "name"), field(node, "return_type"), node.parent.parent
    is_method = outer is not None and outer.type == "impl_item"
    owner = "".join(annotation(field(outer, "type"))[-2:-1]) if is_method else ""
    returns = (annotation(returned) if returned is not None else LITERAL_CHAIN,)
    flags = (PROTOTYPE,) if node.type == "function_signature_item" else ()
    scopes.define(node, name, "function", owner=owner, returns=returns, flags=flags)
    _parameters(scopes, node)


def _parameters(scopes: Scopes, node: Any) -> None:
    for parameter in children(node, "parameters"):
        if parameter.type == "self_parameter":
            scopes.bind(parameter, (SELF,), name="self")
        elif parameter.type == "parameter":
            _bind(scopes, field(parameter, "pattern"), annotation(field(parameter, "type")))
        else:
            _bind(scopes, parameter, UNKNOWN_CHAIN)


def _bind(scopes: Scopes, pattern: Any, value: Chain) -> None:
    """Bind the names of a pattern; `Some(name)` and `Ok(name)` have the value that is matched."""
    stack = [(pattern, value)]
    while stack:
        part, known = stack.pop()
        if part.type == "identifier":
            scopes.bind(part, known)
        elif part.type == "tuple_struct_pattern":
            head, *rest = part.named_children
            is_same = head.text in (b"Some", b"Ok", b"Err") and len(rest) == 1
            stack += [(one, known if is_same else UNKNOWN_CHAIN) for one in rest]
        elif part.type in ("mut_pattern", "ref_pattern", "reference_pattern", "match_pattern"):
            stack += [(one, known) for one in part.named_children[-1:]]
        elif part.type in ("tuple_pattern", "struct_pattern", "field_pattern", "or_pattern"):
            stack += [(one, UNKNOWN_CHAIN) for one in part.named_children]
        elif part.type == "shorthand_field_identifier":
            scopes.bind(part, UNKNOWN_CHAIN)


def _let(scopes: Scopes, node: Any) -> None:
    type_, value = field(node, "type"), field(node, "value")
    known = annotation(type_) if type_ is not None else chain(value)
    _bind(scopes, field(node, "pattern"), known)


def _for(scopes: Scopes, node: Any) -> None:
    known = extended(chain(field(node, "value")), ELEMENT)
    _bind(scopes, field(node, "pattern"), known)


def _arm(scopes: Scopes, node: Any) -> None:
    matched = node.parent.parent
    value = field(matched, "value") if matched.type == "match_expression" else None
    pattern = field(node, "pattern")
    scopes.define(node, None, "")
    # A bare name in a pattern may be a constant: it is bound only inside of another pattern.
    if value is not None and pattern.named_children[0].type != "identifier":
        _bind(scopes, pattern.named_children[0], chain(value))


def _typed_name(scopes: Scopes, node: Any) -> None:
    scopes.bind(field(node, "name"), annotation(field(node, "type")))


def _variant(scopes: Scopes, node: Any) -> None:
    scopes.bind(field(node, "name"), (SELF,))


def _alias(scopes: Scopes, node: Any) -> None:
    scopes.bind(field(node, "name"), type_of(annotation(field(node, "type"))))


def _type_parameter(scopes: Scopes, node: Any) -> None:
    scopes.bind(field(node, "name"), next(iter(_bounds(node)), UNKNOWN_CHAIN))


def _closure(scopes: Scopes, node: Any) -> None:
    scopes.define(node, None, "")
    _parameters(scopes, node)


def _macro(scopes: Scopes, node: Any) -> None:
    scopes.define(node, field(node, "name"), "function")


def _call(scopes: Scopes, node: Any) -> None:
    function = field(node, "function")
    if function.type == "generic_function":
        function = field(function, "function")
    if function.type == "identifier":
        scopes.call(function, chain(function))
    elif function.type in ("field_expression", "scoped_identifier"):
        name, called = field(function, "field") or field(function, "name"), chain(function)
        if called[0] == "super" and scopes.enclosing_class() != MODULE:
            called = ("self", *called[1:])
        scopes.call(name, called)


def _macro_call(scopes: Scopes, node: Any) -> None:
    macro = field(node, "macro")
    if macro.type == "identifier":
        scopes.call(macro, (text(macro),))
    stack = [child for child in node.named_children if child.type == "token_tree"]
    while stack:
        tokens = stack.pop().children
        stack += [token for token in tokens if token.type == "token_tree"]
        for at in range(1, len(tokens)):
            before, after = tokens[at - 1], tokens[at]
            is_list = after.type == "token_tree" and after.text[:1] == b"("
            if is_list and before.type == "identifier":
                scopes.call(before, _tokens(tokens[max(0, at - 2 * MAX_CHAIN) : at]))


def _tokens(tokens: Sequence[Any]) -> Chain:
    """The chain at the end of the tokens of a macro: names between dots or `::`."""
    parts = [text(tokens[-1])]
    at = len(tokens) - 2
    while at > 0 and tokens[at].type in (".", "::") and len(parts) < MAX_CHAIN:
        before = tokens[at - 1]
        if before.type not in ("identifier", "self", "crate", "super"):
            return (UNKNOWN, *reversed(parts))
        parts.append(CLASS if before.text == b"Self" else text(before))
        at -= 2
    return tuple(reversed(parts))


VISITS = {
    "use_declaration": _use,
    "mod_item": _module,
    **dict.fromkeys(("struct_item", "enum_item", "union_item", "trait_item"), _type),
    "impl_item": _impl,
    "type_item": _alias,
    **dict.fromkeys(("function_item", "function_signature_item"), _function),
    "enum_variant": _variant,
    **dict.fromkeys(("const_item", "static_item", "field_declaration"), _typed_name),
    "macro_definition": _macro,
    **dict.fromkeys(("let_declaration", "let_condition"), _let),
    "for_expression": _for,
    "match_arm": _arm,
    "closure_expression": _closure,
    "call_expression": _call,
    "macro_invocation": _macro_call,
    "type_parameter": _type_parameter,
}
