"""The rules of Java: a package is what files state, a class sees its members by their bare name."""

from collections.abc import Sequence
from typing import Any

from apps.code.callgraph import steps
from apps.code.callgraph.facts import (
    CALL,
    CONTAINER,
    ELEMENT,
    INSTANCE,
    LITERAL_CHAIN,
    MODULE,
    PROTOTYPE,
    TYPE,
    UNKNOWN_CHAIN,
    Chain,
    Import,
)
from apps.code.callgraph.project import Project
from apps.code.callgraph.rules import Names, Rules
from apps.code.callgraph.scopes import Scopes, children, extended, field, passed, text
from apps.code.callgraph.values import (
    EXTERNAL_VALUES,
    NO_VALUES,
    UNKNOWN_VALUES,
    Values,
    ordered,
)
from apps.code.values import words

LITERALS = words(
    "string_literal character_literal decimal_integer_literal hex_integer_literal true false "
    "decimal_floating_point_literal binary_expression unary_expression class_literal "
    "update_expression instanceof_expression array_creation_expression"
)
COLLECTIONS = words(
    "List ArrayList LinkedList Collection Set HashSet LinkedHashSet TreeSet SortedSet "
    "Iterable Iterator Optional Map HashMap LinkedHashMap TreeMap ConcurrentMap "
    "ConcurrentHashMap Queue Deque ArrayDeque Stream Supplier Callable Future "
    "CompletableFuture AtomicReference ThreadLocal Provider WeakReference"
)
BASES = ("superclass", "super_interfaces", "extends_interfaces")


def chain(node: Any) -> Chain:
    """The chain of an expression."""
    return steps.follow(node, STEPS, LITERALS)


def _invoked(node: Any, parts: list[str]) -> Any:
    parts += [CALL, text(field(node, "name"))]
    return field(node, "object")


def _typed(node: Any, parts: list[str]) -> Any:
    parts += reversed(annotation(field(node, "type")))


STEPS: steps.Steps = {
    **dict.fromkeys(("identifier", "type_identifier"), steps.plain),
    **dict.fromkeys(("this", "super"), steps.this),
    "method_invocation": _invoked,
    "field_access": steps.member("field", "object"),
    "array_access": steps.applied(ELEMENT, "array"),
    **dict.fromkeys(("object_creation_expression", "cast_expression"), _typed),
    "parenthesized_expression": steps.inner(),
}


def annotation(node: Any) -> Chain:
    """The chain of an object of a type."""
    kind = node.type
    if kind == "type_identifier":
        return (text(node), INSTANCE)
    if kind == "scoped_type_identifier":
        return (*text(node).split("."), INSTANCE)
    if kind == "array_type":
        return (*annotation(field(node, "element")), CONTAINER)
    if kind == "generic_type":
        head, arguments = node.named_children[0], node.named_children[-1].named_children
        if text(head) in COLLECTIONS and arguments:
            inner = arguments[-1]
            if inner.type == "wildcard":
                inner = inner.named_children[-1] if inner.named_children else None
            return (*annotation(inner), CONTAINER) if inner is not None else LITERAL_CHAIN
        return annotation(head)
    return LITERAL_CHAIN


def _package(scopes: Scopes, node: Any) -> None:
    scopes.package = text(node.named_children[-1])


def _import(scopes: Scopes, node: Any) -> None:
    path = next(child for child in node.named_children if "identifier" in child.type)
    if any(child.type == "asterisk" for child in node.named_children):
        scopes.add_import(node, "*", text(path), "*")
    else:
        module, _, name = text(path).rpartition(".")
        scopes.add_import(node, name, module, name)


def _class(scopes: Scopes, node: Any) -> None:
    bases: list[Chain] = []
    for child in node.named_children:
        if child.type in BASES:
            lists = [c for c in child.named_children if c.type == "type_list"]
            types = lists[0].named_children if lists else child.named_children
            bases += [annotation(one)[:-1] for one in types]
    flags = (TYPE,) if node.type == "interface_declaration" else ()
    known = tuple(filter(None, bases))
    scopes.define(node, field(node, "name"), "class", bases=known, flags=flags)
    for parameter in children(node, "parameters"):  # of a record
        scopes.bind(field(parameter, "name"), annotation(field(parameter, "type")))


def _method(scopes: Scopes, node: Any) -> None:
    type_ = field(node, "type")
    value = annotation(type_) if type_ is not None and type_.type != "void_type" else LITERAL_CHAIN
    flags = () if field(node, "body") is not None else (PROTOTYPE,)
    scopes.define(node, field(node, "name"), "function", returns=(value,), flags=flags)


def _constructor(scopes: Scopes, node: Any) -> None:
    # Without a name: callers call the class.
    scopes.define(node, None, "")


def _variables(scopes: Scopes, node: Any) -> None:
    type_ = field(node, "type")
    for declarator in node.children_by_field_name("declarator"):
        is_var = text(type_) == "var"
        value = chain(field(declarator, "value")) if is_var else annotation(type_)
        scopes.bind(field(declarator, "name"), value)


def _parameter(scopes: Scopes, node: Any) -> None:
    name, type_ = field(node, "name"), field(node, "type")
    if node.type == "spread_parameter":
        types = [child for child in node.named_children if child.type != "modifiers"]
        type_, name = types[0], field(types[-1], "name")
        scopes.bind(name, (*annotation(type_), CONTAINER))
    elif name is not None and type_ is not None and node.parent.parent.type != "record_declaration":
        scopes.bind(name, annotation(type_))


def _for(scopes: Scopes, node: Any) -> None:
    type_, value = field(node, "type"), chain(field(node, "value"))
    is_var = text(type_) == "var"
    scopes.bind(field(node, "name"), extended(value, ELEMENT) if is_var else annotation(type_))


def _resource(scopes: Scopes, node: Any) -> None:
    name, type_, value = (field(node, key) for key in ("name", "type", "value"))
    if name is not None and type_ is not None:
        scopes.bind(name, chain(value) if text(type_) == "var" else annotation(type_))


def _catch(scopes: Scopes, node: Any) -> None:
    for kind in node.named_children:
        for type_ in kind.named_children if kind.type == "catch_type" else ():
            scopes.bind(field(node, "name"), annotation(type_))


def _lambda(scopes: Scopes, node: Any) -> None:
    scopes.define(node, None, "")
    parameters = field(node, "parameters")
    named = [parameters] if parameters.type == "identifier" else parameters.named_children
    outer = node.parent.parent if node.parent.type == "argument_list" else None
    called = chain(outer)[:-1] if outer is not None and outer.type == "method_invocation" else ()
    for at, parameter in enumerate(named):
        if parameter.type == "identifier":
            scopes.bind(parameter, passed(called, node, at))


def _constant(scopes: Scopes, node: Any) -> None:
    index = scopes.enclosing_class()
    if index != MODULE:
        scopes.bind(field(node, "name"), (scopes.definitions[index].name, INSTANCE))


def _type_parameter(scopes: Scopes, node: Any) -> None:
    name, *bounds = [child for child in node.named_children if child.type != "modifiers"]
    bound = annotation(bounds[0].named_children[0])[:-1] if bounds else ()
    scopes.bind(name, bound or UNKNOWN_CHAIN)


def _instanceof(scopes: Scopes, node: Any) -> None:
    name = field(node, "name")
    if name is not None:
        scopes.bind(name, annotation(field(node, "right")))


def _call(scopes: Scopes, node: Any) -> None:
    scopes.call(field(node, "name"), chain(node)[:-1])


def _new(scopes: Scopes, node: Any) -> None:
    type_ = field(node, "type")
    while type_.type in ("generic_type", "scoped_type_identifier"):
        type_ = type_.named_children[0 if type_.type == "generic_type" else -1]
    scopes.call(type_, annotation(field(node, "type"))[:-1] or UNKNOWN_CHAIN)
    if node.named_children[-1].type == "class_body":
        bases = (annotation(field(node, "type"))[:-1],)
        scopes.define(node.named_children[-1], None, "class", bases=bases)


VISITS = {
    "package_declaration": _package,
    "import_declaration": _import,
    **dict.fromkeys(("class_declaration", "interface_declaration", "enum_declaration"), _class),
    **dict.fromkeys(("record_declaration", "annotation_type_declaration"), _class),
    "method_declaration": _method,
    "constructor_declaration": _constructor,
    **dict.fromkeys(
        ("field_declaration", "constant_declaration", "local_variable_declaration"), _variables
    ),
    **dict.fromkeys(("formal_parameter", "spread_parameter"), _parameter),
    "enhanced_for_statement": _for,
    "resource": _resource,
    "catch_formal_parameter": _catch,
    "lambda_expression": _lambda,
    "enum_constant": _constant,
    "method_invocation": _call,
    "object_creation_expression": _new,
    "type_parameter": _type_parameter,
    "instanceof_expression": _instanceof,
}


class JavaRules(Rules):
    family = frozenset({"java"})
    sees_members = True
    visits = VISITS
    common = words(
        "add addAll remove get put set size isEmpty contains containsKey equals hashCode toString "
        "append length charAt substring trim split close read write println print format iterator "
        "next hasNext stream map filter collect forEach accept apply test run call getName "
        "getClass name ordinal values valueOf join start wait notify lock unlock compareTo clear "
        "keySet entrySet getKey getValue getMessage of build"
    )

    def global_name(self, names: Names, path: str, name: str) -> Values:
        facts = names.project.facts(path)
        if facts is None:
            return UNKNOWN_VALUES
        for package in (facts.package, *(i.module for i in facts.imports if i.name == "*")):
            if types := self._in_package(names, package, name):
                return types
        for import_ in facts.imports:
            if import_.name == "*" and (values := self._inside(names, import_.module, name)):
                return values
        return EXTERNAL_VALUES

    def _in_package(self, names: Names, package: str, name: str) -> Values:
        """The type of a package; empty if there is none."""
        for file in names.project.defining(name):
            facts = names.project.facts(file) if file.endswith(".java") else None
            is_in = facts and facts.package == package
            if is_in and (values := names.module_names(file, name)):
                return values
        return NO_VALUES

    def imported(self, names: Names, path: str, each: Import) -> Values:
        types = self._in_package(names, each.module, each.member)
        return types or self._inside(names, each.module, each.member) or EXTERNAL_VALUES

    def _inside(self, names: Names, type_: str, name: str) -> Values:
        """A static member of a type, or a type inside of it; empty if there is none."""
        owner = type_.rpartition(".")[2]
        for file in self._files(names.project, type_):
            values = names.union(
                names.member(value, name) for value in ordered(names.module_names(file, owner))
            )
            if values and values != UNKNOWN_VALUES:
                return values
        return NO_VALUES

    def _files(self, project: Project, name: str) -> Sequence[str]:
        """The files of a type by its full name."""
        return project.tree.ending(f"{name.replace('.', '/')}.java")

    def import_paths(self, project: Project, path: str, each: Import) -> Sequence[str]:
        if each.name == "*":
            package = f"/{each.module.replace('.', '/')}"
            for folder, files in project.tree.folders.items():
                if f"/{folder}".endswith(package):
                    return [file for file in files if file.endswith(".java")]
            return self._files(project, each.module)[:1]
        of_member = self._files(project, f"{each.module}.{each.member}")
        return (of_member or self._files(project, each.module))[:1]
