"""The rules of Python."""

import builtins
from collections.abc import Iterable, Sequence
from typing import Any

from apps.code.callgraph.facts import (
    CALL,
    CLASS,
    CONTAINER,
    ELEMENT,
    INSTANCE,
    LITERAL_CHAIN,
    MAX_CHAIN,
    MODULE,
    PROPERTY,
    SELF,
    SUPER,
    UNKNOWN_CHAIN,
    Chain,
    Import,
    words,
)
from apps.code.callgraph.project import Project, folder_of, join
from apps.code.callgraph.rules import Names, Rules
from apps.code.callgraph.scopes import Scopes, Steps, field, follow, text
from apps.code.callgraph.values import (
    EXTERNAL_VALUES,
    UNKNOWN_VALUES,
    Value,
    Values,
    only,
)

BUILTINS = frozenset(dir(builtins))
SUFFIXES = (".py", ".pyi", "/__init__.py", "/__init__.pyi")
# Folders that hold packages without being one.
SOURCES = ("", "src", "lib", "python")
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
PROPERTIES = words("property cached_property hybrid_property")
MAX_UNION = 4
# Elements of a list or dictionary that are followed.
MAX_ELEMENTS = 8


class PythonRules(Rules):
    name = "python"
    family = frozenset({"python"})
    nodes = (
        "class_definition function_definition lambda call assignment named_expression"
        " import_statement import_from_statement for_statement for_in_clause with_item"
        " except_clause return_statement yield global_statement"
    )

    common = frozenset(
        name
        for kind in (str, bytes, list, dict, set, int, float, tuple)
        for name in dir(kind)
        if not name.startswith("_")
    )

    def visit(self, scopes: Scopes, node: Any) -> None:
        VISITS[node.type](scopes, node)

    def global_name(self, names: Names, path: str, name: str) -> Values:
        facts = names.project.facts(path)
        is_sure = True
        for each in facts.imports if facts else ():
            if each.name == "*":
                files = self.import_paths(names.project, path, each)
                if not files:
                    is_sure = False
                for file in files[:1]:
                    found = self._exported(names, file, name)
                    if found:
                        return found
        if name in BUILTINS:
            return EXTERNAL_VALUES
        return EXTERNAL_VALUES if is_sure and name.startswith("__") else UNKNOWN_VALUES

    def _exported(self, names: Names, path: str, name: str) -> Values:
        """A name of a file that may itself come from `import *`."""
        found = names.module_names(path, name)
        if found:
            return found
        value = names.member(Value("module", path), name)
        return frozenset(each for each in value if each.kind not in ("unknown", "external"))

    def imported(self, names: Names, path: str, each: Import) -> Values:
        if each.member:
            for file in self._files(names.project, path, each.module):
                found = names.member(Value("module", file), each.member)
                if found != UNKNOWN_VALUES:
                    return found
            inner = f"{each.module}{'' if each.module.endswith('.') else '.'}{each.member}"
            submodules = self._files(names.project, path, inner)
            if submodules:
                return only(Value("module", submodules[0]))
            if self._files(names.project, path, each.module):
                return UNKNOWN_VALUES
            return EXTERNAL_VALUES
        files = self._files(names.project, path, each.module)
        if files:
            return only(Value("module", files[0]))
        # `import a.b` of a namespace package binds `a`, whose members are looked up by path.
        return EXTERNAL_VALUES

    def module_member(self, names: Names, module: Value, name: str) -> Values:
        found = names.module_names(module.path, name)
        if found and found != UNKNOWN_VALUES:
            return found
        if module.path.endswith(("__init__.py", "__init__.pyi")):
            file = _first(names.project, join(folder_of(module.path), name))
            if file:
                return only(Value("module", file))
        if found:
            return found
        facts = names.project.facts(module.path)
        stars = [each for each in facts.imports if each.name == "*"] if facts else []
        for each in stars:
            for file in self.import_paths(names.project, module.path, each)[:1]:
                inner = names.member(Value("module", file), name)
                if inner and inner != UNKNOWN_VALUES:
                    return inner
        return UNKNOWN_VALUES

    def import_paths(self, project: Project, path: str, each: Import) -> Sequence[str]:
        files = self._files(project, path, each.module)
        if each.member and each.member != "*":
            dot = "" if each.module.endswith(".") else "."
            inner = self._files(project, path, f"{each.module}{dot}{each.member}")
            if inner:
                return inner[:1]
        return files[:1]

    def _files(self, project: Project, path: str, module: str) -> Sequence[str]:
        """The files that a module may be."""
        level = len(module) - len(module.lstrip("."))
        name = module[level:].replace(".", "/")
        if level:
            folder = folder_of(path)
            for _ in range(level - 1):
                folder = folder_of(folder)
            file = _first(project, join(folder, name) if name else folder)
            return [file] if file else []
        # Absolute names begin at a folder of sources: one above the file that is no package, or a
        # usual one.
        folder = folder_of(path)
        roots = [folder]
        while folder:
            folder = folder_of(folder)
            roots.append(folder)
        tree = project.tree
        roots = [each for each in roots if not tree.first(f"{each}/__init__.py".lstrip("/"))]
        found = (_first(project, join(each, name)) for each in dict.fromkeys([*roots, *SOURCES]))
        return [file for file in found if file and file != path]


def _first(project: Project, stem: str) -> str | None:
    return project.tree.first(*(f"{stem}{suffix}".lstrip("/") for suffix in SUFFIXES))


# --- facts ----------------------------------------------------------------------------------------


def values_of(node: Any) -> list[Chain]:
    """The chains that an expression may stand for. None stands for nothing."""
    values: list[Chain] = []
    stack = [node]
    while stack and len(values) < MAX_UNION:
        each = stack.pop()
        kind = each.type
        if kind == "conditional_expression":
            stack += [each.named_children[2], each.named_children[0]]
        elif kind == "boolean_operator":
            stack += [field(each, "right"), field(each, "left")]
        elif kind in ("list", "set", "tuple", "dictionary"):
            values += _held(each)
        elif kind != "none":
            values.append(chain(each))
    return list(dict.fromkeys(values))


def _held(node: Any) -> list[Chain]:
    """The chains of a list or dictionary with its elements."""
    elements = [field(each, "value") or each for each in node.named_children[:MAX_ELEMENTS]]
    held = dict.fromkeys(chain(each) for each in elements if each.type != "comment")
    held.pop(LITERAL_CHAIN, None)
    return [(*each, CONTAINER) for each in held if len(each) < MAX_CHAIN] or [LITERAL_CHAIN]


def chain(node: Any) -> Chain:
    """The chain of an expression."""
    return follow(node, STEPS, LITERALS)


def _plain(node: Any, parts: list[str]) -> Any:
    parts.append(text(node))


def _attribute(node: Any, parts: list[str]) -> Any:
    parts.append(text(field(node, "attribute")))
    return field(node, "object")


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
    is_slice = any(each.type == "slice" for each in node.named_children)
    parts += [] if is_slice else [ELEMENT]
    return field(node, "value")


def _inner(node: Any, parts: list[str]) -> Any:
    return field(node, "value") or node.named_children[-1]


def _list(node: Any, parts: list[str]) -> Any:
    held = field(node, "body") or (node.named_children or [None])[0]
    parts += [CONTAINER, *reversed(chain(held) if held is not None else LITERAL_CHAIN)]


STEPS: Steps = {
    "identifier": _plain,
    "attribute": _attribute,
    "call": _called,
    "subscript": _indexed,
    **dict.fromkeys(("await", "parenthesized_expression", "named_expression"), _inner),
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
    """The chains of the objects that an annotation allows. None stands for nothing."""
    types: list[Chain] = []
    stack = [node]
    while stack and len(types) < MAX_UNION:
        each = stack.pop()
        kind = each.type
        if kind in ("type", "parenthesized_expression"):
            stack += each.named_children[:1]
        elif kind == "binary_operator" or kind == "union_type":
            stack += reversed(each.named_children)
        elif kind in ("generic_type", "subscript"):
            stack += _generic(each, types)
        elif kind == "string":
            types += _quoted(text(each))
        elif kind in ("identifier", "attribute"):
            name = text(each)
            types.append((SELF,) if name == "Self" else (*chain(each), INSTANCE))
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
        types += [each[:-1] for each in annotation(arguments[0])[:1] if each[-1] == INSTANCE]
    elif name in COLLECTIONS or name in MAPPINGS:
        inner = arguments[-1] if name in MAPPINGS else arguments[0]
        types += [(*each, CONTAINER) for each in annotation(inner)[:1]] or [LITERAL_CHAIN]
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
            return [(*each, CONTAINER) for each in _quoted(last)[:1]] or [LITERAL_CHAIN]
    types: list[Chain] = []
    for each in plain.split("|")[:MAX_UNION]:
        name = each.strip().partition("[")[0]
        if name == "Self":
            types.append((SELF,))
        elif name != "None" and all(part.isidentifier() for part in name.split(".")):
            types.append((*name.split("."), INSTANCE))
    return types


def _class(scopes: Scopes, node: Any) -> None:
    arguments = field(node, "superclasses")
    bases = [
        chain(each.named_children[0] if each.type == "subscript" else each)
        for each in (arguments.named_children if arguments else ())
        if each.type in ("identifier", "attribute", "subscript", "call")
    ]
    scopes.define(node, field(node, "name"), "class", bases=tuple(bases))


def _decorators(node: Any) -> set[str]:
    """The last names of the decorators of a definition."""
    parent = node.parent
    if parent is None or parent.type != "decorated_definition":
        return set()
    chains = [
        chain(each.named_children[0]) for each in parent.named_children if each.type == "decorator"
    ]
    return {part for each in chains for part in each if part != CALL}


def _function(scopes: Scopes, node: Any) -> None:
    in_class = scopes.scope != MODULE and scopes.definitions[scopes.scope].kind == "class"
    decorators = _decorators(node)
    is_property = bool(decorators & PROPERTIES)
    returned = field(node, "return_type")
    types = annotation(returned) if returned is not None else []
    if "contextmanager" in decorators or "asynccontextmanager" in decorators:
        types = [(*each[:-1], "%manager") if each[-1] == CONTAINER else each for each in types]
    index = scopes.define(
        node,
        field(node, "name"),
        "function",
        returns=tuple(types),
        flags=(PROPERTY,) if is_property else (),
    )
    if returned is not None or "abstractmethod" in decorators:
        scopes.notes["annotated", index] = True
    first = ""
    if in_class and "staticmethod" not in decorators:
        first = (
            CLASS if "classmethod" in decorators or text(field(node, "name")) == "__new__" else SELF
        )
    _parameters(scopes, field(node, "parameters"), first)


def _parameters(scopes: Scopes, parameters: Any, first: str) -> None:
    """Bind parameters. `first`: what the first one means, if it is the object."""
    for each in parameters.named_children if parameters is not None else ():
        name = each if each.type == "identifier" else field(each, "name")
        if name is None and each.named_children:
            name = each.named_children[0]
        if name is None or name.type not in (
            "identifier",
            "list_splat_pattern",
            "dictionary_splat_pattern",
        ):
            continue
        if name.type != "identifier":
            scopes.bind(name, UNKNOWN_CHAIN, name=text(name).lstrip("*"))
            continue
        if first:
            scopes.notes["self", scopes.scope] = text(name)
            scopes.bind(name, (first,))
            first = ""
            continue
        type_ = field(each, "type")
        chains = annotation(type_) if type_ is not None else []
        if not chains:
            chains = [UNKNOWN_CHAIN]
        scopes.bind_each(name, chains)


def _lambda(scopes: Scopes, node: Any) -> None:
    scopes.define(node, None, "")
    _parameters(scopes, field(node, "parameters"), "")


def _call(scopes: Scopes, node: Any) -> None:
    function = field(node, "function")
    if function.type == "attribute":
        scopes.call(field(function, "attribute"), chain(function))
    elif function.type == "identifier" and function.text != b"super":
        scopes.call(function, chain(function))


def _assignment(scopes: Scopes, node: Any) -> None:
    left, right, type_ = (field(node, name) for name in ("left", "right", "type"))
    values = annotation(type_) if type_ is not None else []
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
        sources = (
            right.named_children
            if right is not None and right.type in ("expression_list", "tuple")
            else []
        )
        for at, target in enumerate(targets):
            paired = len(sources) == len(targets)
            _bind_target(scopes, target, values_of(sources[at]) if paired else [UNKNOWN_CHAIN])


def _named(scopes: Scopes, node: Any) -> None:
    scopes.bind_each(field(node, "name"), values_of(field(node, "value")))


def _for(scopes: Scopes, node: Any) -> None:
    left, right = field(node, "left"), field(node, "right")
    if left is not None and right is not None:
        value = chain(right)
        _bind_target(
            scopes, left, [(*value, ELEMENT)] if len(value) < MAX_CHAIN else [UNKNOWN_CHAIN]
        )


def _with(scopes: Scopes, node: Any) -> None:
    value = field(node, "value")
    if value is None or value.type != "as_pattern":
        return
    target = field(value, "alias")
    expression = value.named_children[0]
    if target is not None and target.named_children:
        entered = (*chain(expression), "__enter__", CALL)
        _bind_target(scopes, target.named_children[0], [entered])


def _except(scopes: Scopes, node: Any) -> None:
    value = field(node, "value") or (node.named_children[0] if node.named_children else None)
    if value is None or value.type != "as_pattern":
        return
    target = field(value, "alias")
    kinds = value.named_children[0]
    types = kinds.named_children if kinds.type == "tuple" else [kinds]
    if target is not None and target.named_children:
        chains = [(*chain(each), INSTANCE) for each in types[:MAX_UNION]]
        _bind_target(scopes, target.named_children[0], chains)


def _return(scopes: Scopes, node: Any) -> None:
    if node.named_children:
        scopes.returns(values_of(node.named_children[0]))


def _yield(scopes: Scopes, node: Any) -> None:
    index = scopes.function()
    if index == MODULE:
        return
    values = values_of(node.named_children[0]) if node.named_children else []
    scopes.returns([(*each, CONTAINER) for each in values])


def _global(scopes: Scopes, node: Any) -> None:
    for each in node.named_children:
        scopes.bind(each, UNKNOWN_CHAIN)


def _import(scopes: Scopes, node: Any) -> None:
    for each in node.named_children:
        if each.type == "aliased_import":
            scopes.add_import(each, text(field(each, "alias")), text(field(each, "name")))
        elif each.type == "dotted_name":
            module = text(each)
            # `import a.b` binds `a`.
            scopes.add_import(each, module.partition(".")[0], module.partition(".")[0])
            if "." in module:
                scopes.add_import(each, "", module)


def _import_from(scopes: Scopes, node: Any) -> None:
    module = text(field(node, "module_name"))
    for each in node.children_by_field_name("name"):
        alias = field(each, "alias") if each.type == "aliased_import" else None
        name = text(field(each, "name") if alias is not None else each)
        scopes.add_import(each, text(alias) if alias is not None else name, module, name)
    for each in node.named_children:
        if each.type == "wildcard_import":
            scopes.add_import(each, "*", module, "*")


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
