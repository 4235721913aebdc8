"""Components of JavaScript: an element of JSX or of a page's template calls one."""

from typing import Any

from apps.code.callgraph.facts import MEMBER, MODULE, Chain, Import
from apps.code.callgraph.javascript_chains import chain, dynamic, values_of
from apps.code.callgraph.javascript_modules import FUNCTIONS, quoted, required
from apps.code.callgraph.scopes import Scopes, field, text

# How modules of the same repository begin; of a workspace they may have any name.
OWN = (".", "/", "@/", "~", "#", "$")
# Functions around a component: `memo(forwardRef(…))`.
MAX_WRAPPERS = 4


def visit_element(scopes: Scopes, node: Any) -> None:
    """`<Panel>`, `<ui.Button />`. Names without a capital or a dot are elements of HTML."""
    name = field(node, "name")
    if not (name.type == "identifier" and text(name)[:1].islower()):
        call(scopes, name)


def call(scopes: Scopes, called: Any) -> None:
    """Add a call of a name or a member."""
    if called.type == "identifier":
        scopes.call(called, chain(called))
    elif called.type == "member_expression":
        scopes.call(field(called, "property"), chain(called))


def visit_page(scopes: Scopes, node: Any) -> None:
    """A page of Vue, Svelte or Astro is a component, which is its default export."""
    scopes.define(node, None, "function", name="default", opens=False)
    scopes.notes["page"] = True


def visit_snippet(scopes: Scopes, node: Any) -> None:
    """A part of a page of Svelte that its template calls."""
    scopes.define(node, node, "function", opens=False)


def visit_tag(scopes: Scopes, node: Any) -> None:
    """A tag in the template of a page. Vue finds `FirstRow` by `first-row`."""
    name = text(node)
    if "-" in name:
        name = "".join(part[:1].upper() + part[1:] for part in name.split("-"))
    scopes.call(node, tuple(name.split(".")))


def visit_dynamic_import(scopes: Scopes, node: Any) -> None:
    """`import('module')` and `require('module')` amid an expression."""
    strings = field(node, "arguments").named_children
    module = quoted(strings[0]) if strings and strings[0].type == "string" else ""
    if module and not (required(node) and node.parent.type == "variable_declarator"):
        row = node.start_point.row
        scopes.imports.append(Import(MODULE, dynamic(module), module, "", row))


def visit_url(scopes: Scopes, node: Any) -> None:
    """`new URL('./worker.js', import.meta.url)` imports a file."""
    arguments = field(node, "arguments")
    given = arguments.named_children if arguments is not None else []
    if len(given) == 2 and given[1].text == b"import.meta.url" and given[0].type == "string":
        module = quoted(given[0])
        module = module if module.startswith((".", "/")) else f"./{module}"
        scopes.imports.append(Import(MODULE, dynamic(module), module, "", node.start_point.row))


def component_in(value: Any) -> Any:
    """The function or the name that a call wraps, as in `memo(Panel)`; None if there is none."""
    for _ in range(MAX_WRAPPERS):
        if value is None or value.type != "call_expression":
            break
        arguments = field(value, "arguments")
        inner = arguments.named_children if arguments.type == "arguments" else []
        value = inner[0] if inner else None
    if value is None or value.type not in ("identifier", *FUNCTIONS):
        return None
    return None if value.type == "identifier" and not text(value)[:1].isupper() else value


def is_made(scopes: Scopes, name: Any, value: Any) -> bool:
    """Whether a call of a library has made a function of functions or objects, as far as one file
    can tell: `const useBasket = defineStore('basket', {…})`. Its name may be called."""
    if value is None or value.type != "call_expression" or scopes.scope != MODULE:
        return False
    if name.type != "identifier" or text(name)[:1].isupper():
        return False
    root = chain(value)[0]
    modules = [imported.module for imported in scopes.imports if imported.name == root]
    given = field(value, "arguments").named_children
    return bool(modules and not modules[0].startswith(OWN)) and any(
        one.type in ("object", "call_expression", *FUNCTIONS) for one in given
    )


def is_styled(value: Any) -> bool:
    """Whether a value is a component that a library makes of styles: `styled.div` or
    `styled(Panel)` before a template, and `styled('div')({…})`."""
    made = field(value, "function") if value.type == "call_expression" else None
    if made is None or made.type not in ("member_expression", "call_expression"):
        return False
    return field(value, "arguments").type == "template_string" or (
        made.type == "call_expression" and text(field(made, "function")) == "styled"
    )


def lazy_component(function: Any) -> list[Chain]:
    """The values of a component in `lazy(() => import('module'))`, with or without
    `.then(m => ({default: m.Panel}))`; empty if it is none."""
    body = field(function, "body") if function.type == "arrow_function" else None
    if body is None or body.type != "call_expression":
        return []
    member = "default"
    for module in values_of(body):
        if module[1:2] == ("then",):
            member = _taken(field(body, "arguments"))
        if module[0].startswith(dynamic("")[:-1]):
            return [(module[0], member)] if member else []
    return []


def _taken(arguments: Any) -> str:
    """The member of a module in `m => m.Panel`, `m => ({default: m.Panel})` and
    `({Panel}) => ({default: Panel})`; "" if it is not known."""
    function = arguments.named_children[0] if arguments.named_children else None
    value = field(function, "body") if function is not None else None
    while value is not None and value.type == "parenthesized_expression":
        value = value.named_children[0] if value.named_children else None
    if value is not None and value.type == "object":
        pairs = [child for child in value.named_children if child.type == "pair"]
        values = [field(one, "value") for one in pairs if text(field(one, "key")) == "default"]
        value = values[0] if values else None
    if value is None or value.type not in ("member_expression", "identifier"):
        return ""
    return text(field(value, "property") or value)


def add_member(scopes: Scopes, function: str, name: Any, values: list[Chain]) -> None:
    """Add a member to a function of the file: `Form.Item = FormItem`."""
    index = scopes.notes.get(("function", function))
    for value in values if index is not None else ():
        known = MEMBER.format(text(name))
        scopes.bind(name, value, name=known, scope=index, within=scopes.scope)


def names_component(scopes: Scopes, name: Any, value: Any) -> bool:
    """Give a component that a call wraps the name of its variable. Return False for other calls."""
    if name.type != "identifier" or not text(name)[:1].isupper():
        return False
    if is_styled(value):
        scopes.define(value, name, "function")
        return True
    inner = component_in(value) if value.type == "call_expression" else None
    if inner is None:
        return False
    if text(field(value, "function")) == "Object.assign" and inner.type == "identifier":
        for member in field(value, "arguments").named_children[-1].named_children:
            key = field(member, "key") or member
            add_member(scopes, text(inner), key, [(text(field(member, "value") or member),)])
    if lazy := lazy_component(inner):
        scopes.bind_each(name, lazy)
    elif inner.type == "identifier":
        scopes.bind_each(name, values_of(inner))
    else:
        scopes.notes["name", inner.id] = name
    return True
