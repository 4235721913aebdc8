"""The chains of expressions and annotations of Python."""

from typing import Any

from apps.code.callgraph import steps
from apps.code.callgraph.facts import (
    CALL,
    CONTAINER,
    ELEMENT,
    INSTANCE,
    LITERAL_CHAIN,
    MAX_CHAIN,
    SELF,
    SUPER,
    UNKNOWN_CHAIN,
    Chain,
)
from apps.code.callgraph.scopes import field, text
from apps.code.values import words

LITERALS = words(
    "string concatenated_string integer float true false list dictionary tuple set "
    "list_comprehension dictionary_comprehension set_comprehension generator_expression "
    "comparison_operator not_operator"
)
# Annotations whose argument is the type itself, and those of collections.
SAME = words("Optional Final ClassVar Annotated Required NotRequired Awaitable")
COLLECTIONS = words(
    "list List Sequence Iterable Iterator Collection set Set FrozenSet frozenset deque Deque "
    "MutableSequence AsyncIterator AsyncIterable ContextVar ReferenceType Queue Generator "
    "AsyncGenerator tuple Tuple"
)
MAPPINGS = words("dict Dict Mapping MutableMapping defaultdict DefaultDict OrderedDict")
MAX_UNION = 4
# Elements of a list or dictionary that are followed.
MAX_ELEMENTS = 8


def values_of(node: Any) -> list[Chain]:
    """The chains that an expression may stand for. None stands for nothing."""
    values: list[Chain] = []
    stack = [node]
    while stack and len(values) < MAX_UNION:
        part = stack.pop()
        kind = part.type
        if kind == "conditional_expression":
            stack += [part.named_children[2], part.named_children[0]]
        elif kind == "boolean_operator":
            stack += [field(part, "right"), field(part, "left")]
        elif kind in ("list", "set", "tuple", "dictionary"):
            values += _held(part)
        elif kind != "none":
            values.append(chain(part))
    return list(dict.fromkeys(values))


def _held(node: Any) -> list[Chain]:
    """The chains of a list or dictionary with its elements."""
    elements = [field(child, "value") or child for child in node.named_children[:MAX_ELEMENTS]]
    inner = dict.fromkeys(chain(element) for element in elements if element.type != "comment")
    inner.pop(LITERAL_CHAIN, None)
    return [(*value, CONTAINER) for value in inner if len(value) < MAX_CHAIN] or [LITERAL_CHAIN]


def chain(node: Any) -> Chain:
    """The chain of an expression."""
    return steps.follow(node, STEPS, LITERALS)


def _called(node: Any, parts: list[str]) -> Any:
    function = field(node, "function")
    name = function.text if function.type == "identifier" else b""
    if name == b"super":
        parts.append(SUPER)
        return None
    if name in (b"cast", b"copy", b"deepcopy"):
        parts += reversed(_cast(node))
        return None
    parts.append(CALL)
    return function


def _indexed(node: Any, parts: list[str]) -> Any:
    is_slice = any(child.type == "slice" for child in node.named_children)
    parts += [] if is_slice else [ELEMENT]
    return field(node, "value")


def _list(node: Any, parts: list[str]) -> Any:
    inner = field(node, "body") or (node.named_children or [None])[0]
    parts += [CONTAINER, *reversed(chain(inner) if inner is not None else LITERAL_CHAIN)]


STEPS: steps.Steps = {
    "identifier": steps.plain,
    "attribute": steps.member("attribute", "object"),
    "call": _called,
    "subscript": _indexed,
    **dict.fromkeys(
        ("await", "parenthesized_expression", "named_expression"), steps.inner("value", -1)
    ),
    **dict.fromkeys(("list", "set", "list_comprehension"), _list),
}


def _cast(node: Any) -> Chain:
    """`cast(T, value)` and `copy(value)`."""
    arguments = field(node, "arguments").named_children
    if not arguments:
        return UNKNOWN_CHAIN
    if field(node, "function").text != b"cast":
        return chain(arguments[0])
    types = annotation(arguments[0])
    return types[0] if types else UNKNOWN_CHAIN


def annotation(node: Any) -> list[Chain]:
    """The chains of the objects that an annotation allows; none without one. None stands for
    nothing."""
    types: list[Chain] = []
    stack = [node] if node is not None else []
    while stack and len(types) < MAX_UNION:
        part = stack.pop()
        kind = part.type
        if kind in ("type", "parenthesized_expression"):
            stack += part.named_children[:1]
        elif kind == "binary_operator" or kind == "union_type":
            stack += reversed(part.named_children)
        elif kind in ("generic_type", "subscript"):
            stack += _generic(part, types)
        elif kind == "string":
            types += _quoted(text(part))
        elif kind in ("identifier", "attribute"):
            name = text(part)
            types.append((SELF,) if name == "Self" else (*chain(part), INSTANCE))
        elif kind != "none":
            types.append(UNKNOWN_CHAIN)
    return types


def _generic(node: Any, types: list[Chain]) -> list[Any]:
    """Add the type of `name[arguments]`; return nodes that are types themselves."""
    head, *arguments = node.named_children
    if len(arguments) == 1 and arguments[0].type == "type_parameter":
        arguments = arguments[0].named_children
    name = text(head).rpartition(".")[2]
    if name == "Union":
        return list(reversed(arguments))
    if name in SAME:
        return list(arguments[:1])
    if name in ("type", "Type"):
        types += [type_[:-1] for type_ in annotation(arguments[0])[:1] if type_[-1] == INSTANCE]
    elif name in COLLECTIONS or name in MAPPINGS:
        inner = arguments[-1] if name in MAPPINGS else arguments[0]
        types += [(*type_, CONTAINER) for type_ in annotation(inner)[:1]] or [LITERAL_CHAIN]
    else:
        types.append((*chain(head), INSTANCE))
    return []


def _quoted(quoted: str) -> list[Chain]:
    """The types of an annotation in quotes: names, perhaps with `| None` and one generic."""
    plain = quoted.strip("\"'").strip()
    head, bracket, inner = plain.partition("[")
    name = head.rpartition(".")[2]
    if bracket and inner.endswith("]"):
        inner = inner[:-1]
        if name in SAME:
            return _quoted(inner)
        if name in COLLECTIONS or name in MAPPINGS:
            last = inner.rpartition(",")[2] if name in MAPPINGS else inner.partition(",")[0]
            return [(*type_, CONTAINER) for type_ in _quoted(last)[:1]] or [LITERAL_CHAIN]
    types: list[Chain] = []
    for option in plain.split("|")[:MAX_UNION]:
        name = option.strip().partition("[")[0]
        if name == "Self":
            types.append((SELF,))
        elif name != "None" and all(part.isidentifier() for part in name.split(".")):
            types.append((*name.split("."), INSTANCE))
    return types
