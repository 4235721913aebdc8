"""Read the facts of Python from syntax trees."""

from collections.abc import Iterable
from typing import Any

from apps.code.callgraph.facts import (
    CALL,
    CLASS,
    CONTAINER,
    ELEMENT,
    INSTANCE,
    MODULE,
    PROPERTY,
    SELF,
    UNKNOWN_CHAIN,
    Chain,
)
from apps.code.callgraph.python_chains import annotation, chain, values_of
from apps.code.callgraph.scopes import Scopes, children, extended, field, text
from apps.code.values import words

PROPERTIES = words("property cached_property hybrid_property")
MAX_UNION = 4


def _class(scopes: Scopes, node: Any) -> None:
    bases = [
        chain(base.named_children[0] if base.type == "subscript" else base)
        for base in children(node, "superclasses")
        if base.type in ("identifier", "attribute", "subscript", "call")
    ]
    scopes.define(node, field(node, "name"), "class", bases=tuple(bases))


def _decorators(node: Any) -> set[str]:
    """The last names of the decorators of a definition."""
    parent = node.parent
    if parent is None or parent.type != "decorated_definition":
        return set()
    chains = [
        chain(child.named_children[0])
        for child in parent.named_children
        if child.type == "decorator"
    ]
    return {part for decorator in chains for part in decorator if part != CALL}


def _function(scopes: Scopes, node: Any) -> None:
    in_class, decorators = scopes.in_class, _decorators(node)
    returned = field(node, "return_type")
    types = annotation(returned)
    if "contextmanager" in decorators or "asynccontextmanager" in decorators:
        types = [(*type_[:-1], "%manager") if type_[-1] == CONTAINER else type_ for type_ in types]
    flags = (PROPERTY,) if decorators & PROPERTIES else ()
    name = field(node, "name")
    index = scopes.define(node, name, "function", returns=tuple(types), flags=flags)
    if returned is not None or "abstractmethod" in decorators:
        scopes.notes["annotated", index] = True
    of_class = "classmethod" in decorators or text(name) == "__new__"
    is_bound = in_class and "staticmethod" not in decorators
    first = (CLASS if of_class else SELF) if is_bound else ""
    _parameters(scopes, node, first)


def _parameters(scopes: Scopes, function: Any, first: str) -> None:
    """Bind parameters. `first`: what the first one means, if it is the object."""
    for parameter in children(function, "parameters"):
        name = parameter if parameter.type == "identifier" else field(parameter, "name")
        if name is None and parameter.named_children:
            name = parameter.named_children[0]
        kind = name.type if name is not None else ""
        if kind in ("list_splat_pattern", "dictionary_splat_pattern"):
            scopes.bind(name, UNKNOWN_CHAIN, name=text(name).lstrip("*"))
        elif kind == "identifier" and first:
            scopes.notes["self", scopes.scope] = text(name)
            scopes.bind(name, (first,))
            first = ""
        elif kind == "identifier":
            scopes.bind_each(name, annotation(field(parameter, "type")) or [UNKNOWN_CHAIN])


def _lambda(scopes: Scopes, node: Any) -> None:
    scopes.define(node, None, "")
    _parameters(scopes, node, "")


def _call(scopes: Scopes, node: Any) -> None:
    function = field(node, "function")
    if function.type == "attribute":
        scopes.call(field(function, "attribute"), chain(function))
    elif function.type == "identifier" and function.text != b"super":
        scopes.call(function, chain(function))


def _assignment(scopes: Scopes, node: Any) -> None:
    left, right, type_ = (field(node, name) for name in ("left", "right", "type"))
    values = annotation(type_)
    if not values or (values == [UNKNOWN_CHAIN] and right is not None):
        values = values_of(right) if right is not None else []
    if right is not None and right.type == "call":
        name = text(field(right, "function")).rpartition(".")[2]
        if name in ("TypeVar", "NewType", "ParamSpec"):
            values = [UNKNOWN_CHAIN]
    _bind_target(scopes, left, values, right)


def _bind_target(scopes: Scopes, left: Any, values: Iterable[Chain], right: Any = None) -> None:
    if left.type == "identifier":
        scopes.bind_each(left, values)
    elif left.type == "attribute":
        holder = field(left, "object")
        function = scopes.function()
        index = scopes.enclosing_class()
        is_self = text(holder) == scopes.notes.get(("self", function))
        if holder.type == "identifier" and index != MODULE and is_self:
            for value in values:
                scopes.bind(left, value, name=text(field(left, "attribute")), scope=index)
    elif left.type in ("pattern_list", "tuple_pattern", "list_pattern"):
        targets = left.named_children
        is_row = right is not None and right.type in ("expression_list", "tuple")
        is_paired = is_row and len(right.named_children) == len(targets)
        for at, target in enumerate(targets):
            values = values_of(right.named_children[at]) if is_paired else [UNKNOWN_CHAIN]
            _bind_target(scopes, target, values)


def _named(scopes: Scopes, node: Any) -> None:
    scopes.bind_each(field(node, "name"), values_of(field(node, "value")))


def _for(scopes: Scopes, node: Any) -> None:
    left, right = field(node, "left"), field(node, "right")
    if left is not None and right is not None:
        _bind_target(scopes, left, [extended(chain(right), ELEMENT)])


def _with(scopes: Scopes, node: Any) -> None:
    value = field(node, "value")
    if value is not None and value.type == "as_pattern":
        _bind_alias(scopes, value, [(*chain(value.named_children[0]), "__enter__", CALL)])


def _except(scopes: Scopes, node: Any) -> None:
    value = field(node, "value") or (node.named_children[0] if node.named_children else None)
    if value is not None and value.type == "as_pattern":
        kinds = value.named_children[0]
        types = kinds.named_children if kinds.type == "tuple" else [kinds]
        _bind_alias(scopes, value, [(*chain(type_), INSTANCE) for type_ in types[:MAX_UNION]])


def _bind_alias(scopes: Scopes, pattern: Any, values: Iterable[Chain]) -> None:
    """Bind what follows `as`."""
    for target in children(pattern, "alias")[:1]:
        _bind_target(scopes, target, values)


def _return(scopes: Scopes, node: Any) -> None:
    if node.named_children:
        scopes.returns(values_of(node.named_children[0]))


def _yield(scopes: Scopes, node: Any) -> None:
    values = values_of(node.named_children[0]) if node.named_children else []
    scopes.returns([(*value, CONTAINER) for value in values])


def _global(scopes: Scopes, node: Any) -> None:
    for child in node.named_children:
        scopes.bind(child, UNKNOWN_CHAIN)


def _import(scopes: Scopes, node: Any) -> None:
    for child in node.named_children:
        if child.type == "aliased_import":
            scopes.add_import(child, text(field(child, "alias")), text(field(child, "name")))
        elif child.type == "dotted_name":
            module = text(child)
            # `import a.b` binds `a`.
            scopes.add_import(child, module.partition(".")[0], module.partition(".")[0])
            if "." in module:
                scopes.add_import(child, "", module)


def _import_from(scopes: Scopes, node: Any) -> None:
    module = text(field(node, "module_name"))
    for imported in node.children_by_field_name("name"):
        alias = field(imported, "alias") if imported.type == "aliased_import" else None
        name = text(field(imported, "name") if alias is not None else imported)
        scopes.add_import(imported, text(alias) if alias is not None else name, module, name)
    for child in node.named_children:
        if child.type == "wildcard_import":
            scopes.add_import(child, "*", module, "*")


VISITS = {
    "class_definition": _class,
    "function_definition": _function,
    "lambda": _lambda,
    "call": _call,
    "assignment": _assignment,
    "named_expression": _named,
    "import_statement": _import,
    "import_from_statement": _import_from,
    "for_statement": _for,
    "for_in_clause": _for,
    "with_item": _with,
    "except_clause": _except,
    "return_statement": _return,
    "yield": _yield,
    "global_statement": _global,
}
