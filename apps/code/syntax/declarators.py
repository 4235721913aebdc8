"""Names in the declarators of C."""

from typing import Any


def macro_name(declarator: Any) -> Any:
    """The node of `name` in `NAMED(name)(void)` and in `TEST(suite, name) {`, where a macro makes
    the name of a function; None in other declarators: C has no functions that return functions."""
    inner = declarator.child_by_field_name("declarator")
    if declarator.type != "function_declarator" or inner is None:
        return None
    if inner.type == "function_declarator":
        macro, arguments = inner.child_by_field_name("declarator"), _arguments(inner)[:1]
        return arguments[0] if arguments and macro and macro.type == "identifier" else None
    return _arguments(declarator)[-1] if _is_macro(declarator, inner) else None


def _is_macro(declarator: Any, name: Any) -> bool:
    """Whether `NAME(a, b)` before a body, without a type and outside of classes, is no function."""
    whole = declarator.parent
    if whole is None or whole.type != "function_definition" or name.type != "identifier":
        return False
    arguments = _arguments(declarator) if whole.child_by_field_name("type") is None else []
    return bool(
        arguments
        and name.text.isupper()
        and (whole.parent is None or whole.parent.type != "field_declaration_list")
        and all(argument.type == "type_identifier" for argument in arguments)
    )


def _arguments(declarator: Any) -> list[Any]:
    """The types of the parameters of a function."""
    parameters = declarator.child_by_field_name("parameters")
    parts = parameters.named_children if parameters is not None else []
    return [
        part.child_by_field_name("type") for part in parts if part.type == "parameter_declaration"
    ]
