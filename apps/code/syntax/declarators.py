"""Names in the declarators of C."""

from typing import Any


def macro_name(declarator: Any) -> Any:
    """The node of `name` in `NAMED(name)(void)`, where a macro makes the name of a function; None
    in other declarators: C has no functions that return functions."""
    inner = declarator.child_by_field_name("declarator")
    if declarator.type != "function_declarator" or inner is None:
        return None
    macro = inner.child_by_field_name("declarator")
    parameters = inner.child_by_field_name("parameters")
    if inner.type != "function_declarator" or macro is None or macro.type != "identifier":
        return None
    first = parameters.named_children[:1] if parameters is not None else []
    types = [part for part in first if part.type == "parameter_declaration"]
    return types[0].child_by_field_name("type") if types else None
