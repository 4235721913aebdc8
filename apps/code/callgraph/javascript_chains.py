"""The chains of expressions and types of JavaScript and TypeScript."""

from typing import Any

from apps.code.callgraph import steps
from apps.code.callgraph.facts import (
    CALL,
    CONTAINER,
    ELEMENT,
    INSTANCE,
    LITERAL_CHAIN,
    SELF,
    UNKNOWN_CHAIN,
    Chain,
)
from apps.code.callgraph.scopes import field, text
from apps.code.values import words

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


PASSING = words("type_annotation parenthesized_type readonly_type type_arguments")


def values_of(node: Any) -> list[Chain]:
    """The chains that an expression may stand for. null stands for nothing."""
    values: list[Chain] = []
    stack = [node]
    while stack and len(values) < MAX_VALUES:
        part = stack.pop()
        operator = field(part, "operator")
        if part.type == "ternary_expression":
            stack += [field(part, "alternative"), field(part, "consequence")]
        elif operator is not None and operator.type in ("??", "||", "&&"):
            stack += [field(part, "right"), field(part, "left")]
        elif part.type == "parenthesized_expression" and part.named_children:
            stack.append(part.named_children[0])
        elif part.type not in ("null", "undefined"):
            values.append(chain(part))
    return list(dict.fromkeys(values))


def chain(node: Any) -> Chain:
    """The chain of an expression."""
    return steps.follow(node, STEPS, LITERALS)


def dynamic(module: str) -> str:
    """The name that stands for a module where it is imported amid an expression."""
    return f"import({module})"


def _called(node: Any, parts: list[str]) -> Any:
    function = field(node, "function")
    if function.type == "import" or function.text == b"require":
        strings = field(node, "arguments").named_children
        if len(strings) == 1 and strings[0].type == "string":
            parts.append(dynamic(text(strings[0]).strip("\"'`")))
            return None
    parts.append(CALL)
    return function


def _asserted(node: Any, parts: list[str]) -> Any:
    """`value as Type` and `<Type>value`."""
    children, is_as = node.named_children, node.type == "as_expression"
    types = annotation(children[-1 if is_as else 0]) if len(children) > 1 else []
    if len(types) != 1 or types[0] == UNKNOWN_CHAIN:
        return children[0 if is_as else -1]
    parts += reversed(types[0])
    return None


def _array(node: Any, parts: list[str]) -> Any:
    inner = chain(node.named_children[0]) if node.named_children else LITERAL_CHAIN
    parts += [CONTAINER, *reversed(inner)]


STEPS: steps.Steps = {
    **dict.fromkeys(("identifier", "shorthand_property_identifier"), steps.plain),
    **dict.fromkeys(("this", "super"), steps.this),
    "member_expression": steps.member("property", "object"),
    "call_expression": _called,
    "new_expression": steps.applied(INSTANCE, "constructor"),
    "subscript_expression": steps.applied(ELEMENT, "object"),
    **dict.fromkeys(WRAPPERS, steps.inner()),
    **dict.fromkeys(("as_expression", "type_assertion"), _asserted),
    "array": _array,
}


def annotation(node: Any) -> list[Chain]:
    """The chains of the objects that a type allows; none without one. null stands for nothing."""
    types: list[Chain] = []
    stack = [node] if node is not None else []
    while stack and len(types) < MAX_VALUES:
        part = stack.pop()
        if part.type in PASSING:
            stack += part.named_children[:1]
        elif part.type in ("union_type", "intersection_type"):
            stack += reversed(part.named_children)
        elif part.type == "generic_type":
            _generic(part, types, stack)
        else:
            types += _simple_type(part)
    return types


def declared(type_: Any, value: Any) -> list[Chain]:
    """The chains of what is declared with a type, a value, or both."""
    values = annotation(type_)
    if values and values != [UNKNOWN_CHAIN]:
        return values
    return values_of(value) if value is not None else [UNKNOWN_CHAIN]


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
